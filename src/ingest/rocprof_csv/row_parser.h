// SPDX-License-Identifier: Apache-2.0
//
// The rows of kernels, calls, markers and copies as slices.
#pragma once

#include <memory>

#include "ingest/common/record_reader.h"
#include "ingest/rocprof_csv/agents.h"
#include "ingest/rocprof_csv/counters.h"
#include "ingest/rocprof_csv/sheets.h"

namespace lamina::ingest::rocprof_csv {

// All must outlive the parser.
std::unique_ptr<RecordParser> MakeRowParser(const Sheets& sheets,
                                            const Agents& agents,
                                            const CounterTable& counters);

}  // namespace lamina::ingest::rocprof_csv
