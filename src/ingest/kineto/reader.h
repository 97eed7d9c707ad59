// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/byte_source.h"
#include "ingest/common/format.h"
#include "trace/trace.h"

namespace lamina::ingest::kineto {

// Reads a Kineto trace from any source of bytes.
Result<trace::Trace> ReadKineto(std::unique_ptr<ByteSource> source,
                                const ReadOptions& options);

}  // namespace lamina::ingest::kineto
