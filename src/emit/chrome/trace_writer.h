// SPDX-License-Identifier: Apache-2.0
//
// A trace of any format as Chrome JSON with the categories and argument names
// of PyTorch's profiler, for viewers and tools that read nothing else. A trace
// that came as JSON is better copied (copy.h): a copy loses nothing.
#pragma once

#include "base/byte_sink.h"
#include "trace/trace.h"

namespace lamina::emit {

struct WrittenJson {
  uint64_t overlaps = 0;  // slices on threads "(overlap)"
  int64_t shift_ns = 0;   // added to every time, so that none is negative
};

// Writes the whole trace; does not close the sink. Times in the file are
// microseconds with three decimals, exact. Nothing overlaps on a thread without
// nesting: what would goes to a thread "(overlap)" beside it.
WrittenJson WriteChromeTrace(const trace::Trace& trace, ByteSink& sink);

}  // namespace lamina::emit
