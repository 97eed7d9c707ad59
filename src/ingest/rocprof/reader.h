// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/byte_source.h"
#include "ingest/common/format.h"
#include "ingest/common/record_reader.h"
#include "ingest/rocprof/catalog.h"
#include "trace/trace.h"

namespace lamina::ingest::rocprof {

// Reads the JSON of rocprofv3.
Result<trace::Trace> ReadRocprof(std::unique_ptr<ByteSource> source,
                                 const ReadOptions& options);

// Parses the arrays of buffer_records.
std::unique_ptr<RecordParser> MakeParser(Catalog* catalog);

}  // namespace lamina::ingest::rocprof
