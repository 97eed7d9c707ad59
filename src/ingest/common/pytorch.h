// SPDX-License-Identifier: Apache-2.0
//
// What PyTorch writes into any profiler: texts of its ops, and facts about a
// recording in the form of its own profiler.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/builder.h"
#include "trace/trace.h"

namespace lamina::ingest {

// Ranges that PyTorch writes into other profilers: under
// torch.autograd.profiler.emit_nvtx, and roctx alike, every op is a range whose
// text holds its name, sequence number and shapes.

// "aten::mm, seq = 12, op_id = 317177, sizes = [[2, 3], [3, 4]]".
struct OpText {
  std::string_view name;
  int64_t sequence = trace::kNoInt;
  int64_t op_id = trace::kNoInt;
  std::string_view sizes;  // "[[2, 3], [3, 4]]"; empty: not recorded
};
// False when the text is no op.
bool ParseOpText(std::string_view text, OpText& op);

// The numbers that make the texts of one op all different.
struct OpNumbers {
  int64_t sequence = trace::kNoInt;
  int64_t op_id = trace::kNoInt;
};
// Takes the numbers out of a text: `pattern` gets the text with zeros in their
// places, which is what a trace repeats. A number that printing it would not
// give back ("007") stays in the pattern.
OpNumbers CutNumbers(std::string_view text, std::string& pattern);
// The text of which CutNumbers() made this.
std::string PutNumbers(std::string_view pattern, const OpNumbers& numbers);

// A text in the names of one thread: an op, or an annotation that has a name
// only.
struct RangeName {
  bool is_op = false;
  StringId name;
  StringId sizes;
  OpNumbers numbers;
};

// Adds ranges to segments: as the op that the text names, or as an annotation.
// One per thread that reads.
class RangeWriter {
 public:
  explicit RangeWriter(trace::LocalNames* names) : names_(*names) {}

  RangeName Name(std::string_view text);
  void Add(trace::Segment& segment, int64_t start_ns, int64_t end_ns,
           trace::TrackId track, const RangeName& range,
           uint64_t offset = trace::Diagnostics::kNoOffset);
  void Add(trace::Segment& segment, int64_t start_ns, int64_t end_ns,
           trace::TrackId track, std::string_view text,
           uint64_t offset = trace::Diagnostics::kNoOffset) {
    Add(segment, start_ns, end_ns, track, Name(text), offset);
  }

 private:
  StringId Sizes(std::string_view fields);

  trace::LocalNames& names_;
  // Lists of sizes by the end of the text that has them: a trace repeats a few.
  TextMap<StringId> sizes_;
};

// Facts about a recording in the form that PyTorch's profiler gives them.

// The list "deviceProperties" and the object "distributedInfo", as JSON text.
// False when the text has another form; what is unknown in it is skipped.
bool ReadDeviceProperties(std::string_view json, trace::Info& info);
bool ReadDistributedInfo(std::string_view json, trace::Info& info);

}  // namespace lamina::ingest
