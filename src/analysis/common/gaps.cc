// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/gaps.h"

#include <algorithm>

namespace lamina::analysis {
namespace {

bool IsBlocking(std::string_view name) {
  const auto has = [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  };
  return has("Synchronize") || has("EventQuery") ||
         ((has("Memcpy") || has("Memset")) && !has("Async"));
}

// The host event that covers most of a gap on the thread of `launch`, looking
// back from it. The walk is bounded: a gap with thousands of small events in
// it has no single cause.
NodeId HostEventIn(const tree::Tree& tree, NodeId launch, Interval gap) {
  constexpr int kMaxWalk = 4096;
  const Trace& trace = tree.trace();
  const auto track = trace.slices.track[tree.slice(launch).value];
  int64_t best = 0;
  NodeId found;
  int steps = 0;
  for (uint32_t n = launch.value; n-- > 0 && steps < kMaxWalk; ++steps) {
    const SliceId s = tree.slice(NodeId(n));
    if (trace.slices.track[s.value] != track) break;
    const int64_t overlap = std::min(trace.End(s), gap.end_ns) -
                            std::max(trace.Start(s), gap.start_ns);
    // An outer event covers at least as much as what is in it; the innermost
    // of those that cover the same is the cause, and it comes first here.
    if (overlap > best) {
      best = overlap;
      found = NodeId(n);
    }
    if (!tree.parent(NodeId(n)).valid() && trace.End(s) <= gap.start_ns) break;
  }
  return best * 2 >= gap.length_ns() ? found : NodeId();
}

}  // namespace

std::string_view GapCauseName(GapCause cause) {
  switch (cause) {
    case GapCause::kUnknown:
      return "unknown";
    case GapCause::kHostBusy:
      return "host_busy";
    case GapCause::kHostBlocked:
      return "host_blocked";
    case GapCause::kLaunchLatency:
      return "launch_latency";
  }
  return "unknown";
}

std::vector<Gap> LongestGaps(const tree::Tree& tree, const IntervalSet& busy,
                             size_t limit) {
  const Trace& trace = tree.trace();
  std::vector<Interval> gaps = busy.Gaps();
  const auto longer = [](const Interval& a, const Interval& b) {
    if (a.length_ns() != b.length_ns()) return a.length_ns() > b.length_ns();
    return a.start_ns < b.start_ns;
  };
  const size_t keep = std::min(limit, gaps.size());
  std::partial_sort(gaps.begin(),
                    gaps.begin() + static_cast<ptrdiff_t>(keep), gaps.end(),
                    longer);
  gaps.resize(keep);
  std::vector<Gap> out;
  const auto slices = trace.device_slices();
  for (const Interval& interval : gaps) {
    Gap gap;
    gap.interval = interval;
    const auto next = std::lower_bound(
        slices.begin(), slices.end(), interval.end_ns,
        [&](SliceId s, int64_t time) { return trace.Start(s) < time; });
    if (next != slices.end()) gap.next = *next;
    const NodeId launch =
        gap.next.valid() ? tree.launch(gap.next) : NodeId();
    if (launch.valid()) {
      if (trace.End(tree.slice(launch)) <= interval.start_ns) {
        gap.cause = GapCause::kLaunchLatency;
        gap.host = launch;
      } else {
        gap.cause = GapCause::kHostBusy;
        gap.host = HostEventIn(tree, launch, interval);
        if (gap.host.valid() && IsBlocking(tree.name(gap.host)))
          gap.cause = GapCause::kHostBlocked;
      }
    }
    out.push_back(gap);
  }
  return out;
}

}  // namespace lamina::analysis
