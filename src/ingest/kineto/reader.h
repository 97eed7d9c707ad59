// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/byte_source.h"
#include "ingest/common/format.h"
#include "ingest/common/record_reader.h"
#include "trace/trace.h"

namespace lamina::ingest::kineto {

// Reads a Kineto trace from any source of bytes.
Result<trace::Trace> ReadKineto(std::unique_ptr<ByteSource> source,
                                const ReadOptions& options);

// Turns the events of a chunk of a Kineto trace into rows of a Segment.

std::unique_ptr<RecordParser> MakeEventParser();

}  // namespace lamina::ingest::kineto
