// SPDX-License-Identifier: Apache-2.0
//
// Ranges that PyTorch writes into other profilers: under
// torch.autograd.profiler.emit_nvtx, and roctx alike, every op is a range whose
// text holds its name, sequence number and shapes.
#pragma once

#include <cstdint>
#include <string_view>

#include "trace/builder.h"

namespace lamina::ingest {

// "aten::mm, seq = 12, op_id = 317177, sizes = [[2, 3], [3, 4]]".
struct OpText {
  std::string_view name;
  int64_t sequence = trace::kNoInt;
  int64_t op_id = trace::kNoInt;
  std::string_view sizes;  // "[[2, 3], [3, 4]]"; empty: not recorded
};
// False when the text is no op.
bool ParseOpText(std::string_view text, OpText& op);

// Adds ranges to segments: as the op that the text names, or as an annotation.
// One per thread that reads.
class RangeWriter {
 public:
  explicit RangeWriter(trace::LocalNames* names) : names_(*names) {}

  void Add(trace::Segment& segment, int64_t start_ns, int64_t end_ns,
           trace::TrackId track, std::string_view text,
           uint64_t offset = trace::Diagnostics::kNoOffset);

 private:
  StringId Sizes(std::string_view fields);

  trace::LocalNames& names_;
  // Lists of sizes by the end of the text that has them: a trace repeats a few.
  TextMap<StringId> sizes_;
};

}  // namespace lamina::ingest
