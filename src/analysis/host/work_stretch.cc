// SPDX-License-Identifier: Apache-2.0
#include "analysis/host/work_stretch.h"

#include <cstdint>

#include "base/parallel.h"

namespace lamina::analysis::host {

std::vector<WorkStretch> CutWork(const trace::Trace& trace,
                                 std::span<const trace::SliceId> work,
                                 int threads, size_t events) {
  std::vector<WorkStretch> out((work.size() + events - 1) / events);
  ParallelRanges(threads, work.size(), events,
                 [&](size_t begin, size_t end, size_t part) {
                   trace::SliceId last = work[begin];
                   int64_t reached = trace.End(last);
                   for (size_t i = begin + 1; i < end; ++i) {
                     const int64_t own = trace.End(work[i]);
                     if (own < reached) continue;
                     reached = own;
                     last = work[i];
                   }
                   out[part] = {begin, end, trace::SliceId(), last};
                 });
  for (size_t i = 1; i < out.size(); ++i) {
    out[i].before = out[i - 1].behind;
    if (trace.End(out[i].before) > trace.End(out[i].behind))
      out[i].behind = out[i].before;
  }
  return out;
}

}  // namespace lamina::analysis::host
