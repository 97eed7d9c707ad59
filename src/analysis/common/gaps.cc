// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/gaps.h"

#include <algorithm>

namespace lamina::analysis {
namespace {

// Hardware takes no longer from a call to its work on a device that is free.
constexpr int64_t kLongestLatencyNs = 100'000;

}  // namespace

bool IsBlockingCall(std::string_view name) {
  const auto has = [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  };
  return has("Synchronize") || has("EventQuery") ||
         ((has("Memcpy") || has("Memset")) && !has("Async"));
}

namespace {

// For each gap the innermost host event on the thread of its launch that
// covers at least half of it, Python frames too. Such an event covers the
// middle of the gap, so one pass over all slices with a look-up among the
// middles finds them all.
void FindHostEvents(const tree::Tree& tree, std::vector<Gap>& gaps) {
  const Trace& trace = tree.trace();
  struct Middle {
    int64_t time_ns;
    size_t gap;
    trace::TrackId track;
  };
  std::vector<Middle> middles;
  int64_t shortest = 0;
  for (size_t i = 0; i < gaps.size(); ++i) {
    if (gaps[i].cause != GapCause::kHostBusy) continue;
    const Interval& g = gaps[i].interval;
    const NodeId launch = tree.launch(gaps[i].next);
    middles.push_back({g.start_ns + g.length_ns() / 2, i,
                       trace.slices.track[tree.slice(launch).value]});
    if (shortest == 0 || g.length_ns() < shortest) shortest = g.length_ns();
  }
  if (middles.empty()) return;
  std::sort(
      middles.begin(), middles.end(),
      [](const Middle& a, const Middle& b) { return a.time_ns < b.time_ns; });
  const trace::Slices& slices = trace.slices;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (slices.dur_ns[i] * 2 < shortest) continue;
    if (!trace::IsHostTree(slices.kind[i])) continue;
    const int64_t start = slices.start_ns[i];
    const int64_t end = start + slices.dur_ns[i];
    auto it = std::lower_bound(
        middles.begin(), middles.end(), start,
        [](const Middle& m, int64_t time) { return m.time_ns < time; });
    for (; it != middles.end() && it->time_ns <= end; ++it) {
      if (it->track != slices.track[i]) continue;
      Gap& gap = gaps[it->gap];
      const int64_t overlap = std::min(end, gap.interval.end_ns) -
                              std::max(start, gap.interval.start_ns);
      if (overlap * 2 < gap.interval.length_ns()) continue;
      if (!gap.host.valid() || slices.dur_ns[i] < slices.dur_ns[gap.host.value])
        gap.host = SliceId(i);
    }
  }
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
    case GapCause::kQueued:
      return "queued";
  }
  return "unknown";
}

std::vector<Gap> LongestGaps(const tree::Tree& tree, const Timeline& timeline,
                             size_t limit) {
  const Trace& trace = tree.trace();
  std::vector<Interval> gaps = timeline.Gaps();
  const auto longer = [](const Interval& a, const Interval& b) {
    if (a.length_ns() != b.length_ns()) return a.length_ns() > b.length_ns();
    return a.start_ns < b.start_ns;
  };
  const size_t keep = std::min(limit, gaps.size());
  std::partial_sort(gaps.begin(), gaps.begin() + static_cast<ptrdiff_t>(keep),
                    gaps.end(), longer);
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
    const NodeId launch = gap.next.valid() ? tree.launch(gap.next) : NodeId();
    if (launch.valid()) {
      if (trace.End(tree.slice(launch)) <= interval.start_ns) {
        gap.cause = interval.end_ns - trace.Start(tree.slice(launch)) >
                            kLongestLatencyNs
                        ? GapCause::kQueued
                        : GapCause::kLaunchLatency;
        gap.host = tree.slice(launch);
      } else {
        gap.cause = GapCause::kHostBusy;
      }
    }
    out.push_back(gap);
  }
  FindHostEvents(tree, out);
  for (Gap& gap : out) {
    if (gap.cause == GapCause::kHostBusy && gap.host.valid() &&
        IsBlockingCall(trace.Name(gap.host)))
      gap.cause = GapCause::kHostBlocked;
  }
  return out;
}

}  // namespace lamina::analysis
