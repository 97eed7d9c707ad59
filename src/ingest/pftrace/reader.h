// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/byte_source.h"
#include "ingest/common/format.h"
#include "trace/trace.h"

namespace lamina::ingest::pftrace {

// Reads a Perfetto trace from any source of bytes.
Result<trace::Trace> ReadPftrace(std::unique_ptr<ByteSource> source,
                                 const ReadOptions& options);

}  // namespace lamina::ingest::pftrace
