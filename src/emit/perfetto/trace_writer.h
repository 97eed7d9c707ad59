// SPDX-License-Identifier: Apache-2.0
//
// A trace of any format as a Perfetto trace: slices with typed arguments,
// launch and autograd flows, instants, counters, ordered tracks. Nothing
// overlaps on a track: what does not nest goes to a track "(overlap)" beside
// it with its times as they are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_sink.h"
#include "trace/trace.h"

namespace lamina::emit::perfetto {

// A span on a track of its own: passes, layers, parts of layers.
struct ExtraSpan {
  std::string group;  // "lamina: device 0"
  std::string lane;   // "layer"
  std::string name;
  int64_t start_ns = 0;
  int64_t dur_ns = 0;
};

// An argument more for a slice.
struct ExtraArg {
  trace::SliceId slice;
  std::string name;  // "lamina.layer"
  std::string text;
};

// An arrow more, from a slice to one that does not begin before it, or to an
// extra span. This form draws arrows in the order in which their ends begin.
struct ExtraArrow {
  trace::SliceId from;
  trace::SliceId to;  // invalid: to the span
  uint32_t span = 0;  // position in Extras::spans
};

struct Extras {
  std::vector<ExtraSpan> spans;
  std::vector<ExtraArrow> arrows;
  std::vector<ExtraArg> args;  // by slice
  bool args_of_slices = true;  // false: names and times only
};

struct Written {
  uint64_t packets = 0;
  uint64_t overlaps = 0;  // slices on tracks "(overlap)"
  int64_t shift_ns = 0;   // added to every time, so that none is negative
};

// True for names that ask for this form: .pftrace, .pftrace.gz,
// .perfetto-trace.
bool IsPerfettoName(std::string_view path);

// Writes the whole trace; does not close the sink. Near-linear in the number
// of slices; memory is some 60 bytes per slice.
Written WriteTrace(const trace::Trace& trace, const Extras& extras,
                   ByteSink& sink);

}  // namespace lamina::emit::perfetto
