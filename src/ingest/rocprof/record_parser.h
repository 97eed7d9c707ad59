// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ingest/common/record_reader.h"
#include "ingest/rocprof/catalog.h"

namespace lamina::ingest::rocprof {

// Parses the arrays of buffer_records.
std::unique_ptr<RecordParser> MakeParser(Catalog* catalog);

}  // namespace lamina::ingest::rocprof
