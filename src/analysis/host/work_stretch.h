// SPDX-License-Identifier: Apache-2.0
//
// Device work cut into stretches that are walked apart: all that a walk knows
// of the work before is what ends last of it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/interval_set.h"
#include "trace/trace.h"

namespace lamina::analysis::host {

struct WorkStretch {
  size_t begin = 0, end = 0;
  // What holds the running maximum of the ends of all work before the stretch
  // and with it, the later one where two end together; invalid: there is none.
  trace::SliceId before, behind;
};

// Stretches of `events` of some work that is sorted by start (the last one: of
// what is left), in order.
std::vector<WorkStretch> CutWork(const trace::Trace& trace,
                                 std::span<const trace::SliceId> work,
                                 int threads, size_t events = size_t{1} << 14);

// Calls f(gap, next, before) for the gaps that end in a stretch of work that is
// sorted by start: from what holds the running maximum of the ends, `before`,
// to the start of `next`.
template <class F>
void ForGaps(const trace::Trace& trace, std::span<const trace::SliceId> work,
             const WorkStretch& stretch, const F& f) {
  trace::SliceId last = stretch.before;
  int64_t reached = last.valid() ? trace.End(last) : 0;
  for (size_t i = stretch.begin; i < stretch.end; ++i) {
    const trace::SliceId s = work[i];
    const int64_t start = trace.Start(s), end = trace.End(s);
    if (last.valid() && start > reached) f(Interval{reached, start}, s, last);
    if (!last.valid() || end >= reached) {
      reached = end;
      last = s;
    }
  }
}

}  // namespace lamina::analysis::host
