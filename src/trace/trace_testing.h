// SPDX-License-Identifier: Apache-2.0
//
// For tests: traces of one thing alone.
#pragma once

#include <span>

#include "base/interval_set.h"
#include "trace/builder.h"

namespace lamina::trace {

// Kernels "k" of stream 7 of device 0, in the order given.
inline Trace KernelTrace(std::span<const Interval> kernels) {
  LocalNames names;
  Segment segment(&names);
  for (const Interval& kernel : kernels) {
    DeviceArgs args;
    args.device = 0;
    args.stream = 7;
    segment.AddSlice(kernel.start_ns, kernel.length_ns(), names.Intern("k"),
                     Kind::kKernel, names.InternCategory("kernel"),
                     names.InternTrack(names.Intern("0"), names.Intern("7")),
                     segment.next_uid++, segment.AddDevice(args));
  }
  segment.Seal();
  TraceBuilder builder;
  builder.Append(segment);
  return builder.Finish(1);
}

}  // namespace lamina::trace
