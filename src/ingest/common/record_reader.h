// SPDX-License-Identifier: Apache-2.0
//
// Drives the parallel reading of record arrays: one thread at a time cuts the
// next chunk, all threads parse, and finished segments are joined in input
// order.
#pragma once

#include <functional>
#include <memory>

#include "base/json/stream.h"
#include "base/status.h"
#include "ingest/common/format.h"
#include "trace/builder.h"

namespace lamina::ingest {

// Parses chunks on one thread. Made once per worker.
class RecordParser {
 public:
  virtual ~RecordParser() = default;
  // `chunk` will be given to Parse() on this thread. Called for one chunk at a
  // time, in input order.
  virtual void Claim(const Chunk& chunk) { (void)chunk; }
  // Fills `segment` (empty, bound to names()) with the records of `chunk`.
  virtual void Parse(const Chunk& chunk, trace::Segment& segment) = 0;

  trace::LocalNames* names() { return &names_; }

 private:
  trace::LocalNames names_;
};

using MakeRecordParser = std::function<std::unique_ptr<RecordParser>()>;

// The records of all chunks that `next` gives: false at the end. It is called
// by one thread at a time; chunks are numbered by their sequence.
Status ReadChunks(const std::function<Result<bool>(Chunk&)>& next,
                  const ReadOptions& options, trace::TraceBuilder& builder,
                  const MakeRecordParser& make_parser);

// Those of a JSON document.
Status ReadRecords(json::JsonStream& stream, const ReadOptions& options,
                   trace::TraceBuilder& builder,
                   const MakeRecordParser& make_parser);

}  // namespace lamina::ingest
