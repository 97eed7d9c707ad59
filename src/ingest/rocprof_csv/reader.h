// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/byte_source.h"
#include "ingest/common/format.h"
#include "trace/trace.h"

namespace lamina::ingest::rocprof_csv {

// Reads the CSV files of one run as one trace; `name` appears in messages.
Result<trace::Trace> ReadCsvFiles(
    const std::string& name, std::vector<std::unique_ptr<ByteSource>> sources,
    const ReadOptions& options);

}  // namespace lamina::ingest::rocprof_csv
