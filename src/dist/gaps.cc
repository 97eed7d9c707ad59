// SPDX-License-Identifier: Apache-2.0
#include "dist/gaps.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <numeric>

namespace lamina::dist {
namespace {

using trace::SliceId;
using tree::NodeId;

// What a summary keeps of one gap. Shorter ops explain no late start, and calls
// that overlap by thousands must not make the work quadratic.
constexpr size_t kItems = 24;
constexpr int64_t kShortestNs = 500;
constexpr size_t kMostSlices = 4096;

NamedTimes Longest(
    const absl::flat_hash_map<std::string_view, int64_t>& times) {
  NamedTimes out;
  for (const auto& [name, ns] : times) {
    if (ns >= kShortestNs) out.emplace_back(name, ns);
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (out.size() > kItems) out.resize(kItems);
  return out;
}

}  // namespace

GapFinder::GapFinder(const analysis::Context& context,
                     const std::vector<bool>& lanes,
                     const std::vector<analysis::Collective>& calls)
    : context_(context), calls_(calls) {
  const trace::Trace& trace = context.trace;
  const auto n = static_cast<uint32_t>(calls.size());
  std::vector<uint32_t> by_end(n);
  std::iota(by_end.begin(), by_end.end(), 0U);
  std::stable_sort(by_end.begin(), by_end.end(), [&](uint32_t a, uint32_t b) {
    return trace.End(calls[a].slice) < trace.End(calls[b].slice);
  });
  previous_.assign(n, kNoIndex);
  size_t ended = 0;
  for (uint32_t i = 0; i < n; ++i) {
    while (ended < n &&
           trace.End(calls[by_end[ended]].slice) <= trace.Start(calls[i].slice))
      ++ended;
    // A call of length 0 ends where it starts and comes before no other.
    if (ended > 0 && by_end[ended - 1] != i) previous_[i] = by_end[ended - 1];
  }

  launch_before_.assign(n, NodeId());
  std::vector<std::pair<NodeId, uint32_t>> launches;
  for (uint32_t i = 0; i < n; ++i) {
    const NodeId launch = context.tree.launch(calls[i].slice);
    if (launch.valid()) launches.emplace_back(launch, i);
  }
  std::sort(launches.begin(), launches.end());
  for (size_t i = 1; i < launches.size(); ++i) {
    const auto track = [&](NodeId node) {
      return trace.slices.track[context.tree.slice(node).value];
    };
    if (track(launches[i - 1].first) == track(launches[i].first))
      launch_before_[launches[i].second] = launches[i - 1].first;
  }

  for (const SliceId s : trace.device_slices()) {
    if (context.device.communication(s) || !lanes[trace.Device(s)->lane.value])
      continue;
    work_.push_back(s);
    const int64_t end = trace.End(s);
    latest_end_.push_back(
        latest_end_.empty() ? end : std::max(end, latest_end_.back()));
  }
}

Gap GapFinder::Before(uint32_t call) const {
  const trace::Trace& trace = context_.trace;
  Gap gap;
  gap.previous = previous_[call];
  const int64_t end = trace.Start(calls_[call].slice);
  gap.start_ns = gap.previous == kNoIndex
                     ? trace.first_ns
                     : trace.End(calls_[gap.previous].slice);
  const auto last = static_cast<size_t>(
      std::partition_point(work_.begin(), work_.end(),
                           [&](SliceId s) { return trace.Start(s) < end; }) -
      work_.begin());
  auto first = static_cast<size_t>(
      std::partition_point(latest_end_.begin(), latest_end_.end(),
                           [&](int64_t e) { return e <= gap.start_ns; }) -
      latest_end_.begin());
  if (last > kMostSlices) first = std::max(first, last - kMostSlices);
  absl::flat_hash_map<std::string_view, int64_t> times;
  IntervalSet busy;
  for (size_t i = first; i < last; ++i) {
    const SliceId s = work_[i];
    const Interval part{std::max(trace.Start(s), gap.start_ns),
                        std::min(trace.End(s), end)};
    if (part.length_ns() <= 0) continue;
    busy.AppendSorted(part);
    // A copy says itself what is copied; the op is often one of many.
    const NodeId launcher = context_.device.launcher(s);
    const bool copy = trace.KindOf(s) == trace::Kind::kMemcpy;
    times[launcher.valid() && !copy ? context_.tree.name(launcher)
                                    : trace.Name(s)] += part.length_ns();
  }
  const std::vector<Interval> idle = busy.Gaps({gap.start_ns, end});
  for (const Interval& i : idle) gap.idle_ns += i.length_ns();
  gap.device = Longest(times);
  gap.host = HostTimes(call, idle);
  return gap;
}

// What the launching thread did between the launch before and this one while
// the device had nothing to do: self times of events, and the rest.
NamedTimes GapFinder::HostTimes(uint32_t call,
                                const std::vector<Interval>& idle) const {
  const tree::Tree& tree = context_.tree;
  const trace::Trace& trace = context_.trace;
  const NodeId launch = tree.launch(calls_[call].slice);
  const NodeId before = launch_before_[call];
  if (!launch.valid() || !before.valid() || idle.empty()) return {};
  const int64_t begin = trace.Start(tree.slice(before));
  const int64_t end = trace.Start(tree.slice(launch));
  const auto idle_in = [&](int64_t from, int64_t to) {
    to = std::min(to, end);
    auto it = std::partition_point(
        idle.begin(), idle.end(),
        [&](const Interval& i) { return i.end_ns <= from; });
    int64_t sum = 0;
    for (; it != idle.end() && it->start_ns < to; ++it)
      sum += std::min(it->end_ns, to) - std::max(it->start_ns, from);
    return sum;
  };
  absl::flat_hash_map<std::string_view, int64_t> times;
  int64_t outside = idle_in(begin, end);
  if (outside <= 0) return {};
  for (NodeId n = before; n.value < launch.value; n = NodeId(n.value + 1)) {
    const SliceId s = tree.slice(n);
    const int64_t ns = idle_in(trace.Start(s), trace.End(s));
    if (ns <= 0) continue;
    times[tree.name(n)] += ns;
    const NodeId parent = tree.parent(n);
    if (parent.valid() && parent >= before) {
      times[tree.name(parent)] -= ns;
    } else {
      outside -= ns;
    }
  }
  if (outside > 0) times["(outside of ops)"] += outside;
  return Longest(times);
}

}  // namespace lamina::dist
