// SPDX-License-Identifier: Apache-2.0
#include "engine/range_limit.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/counted.h"
#include "base/interval_set.h"
#include "trace/categories.h"
#include "tree/tree.h"

namespace lamina::engine {
namespace {

using trace::Kind;
using trace::SliceId;
using trace::Trace;

bool Matches(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == text;
  const std::string_view rest = pattern.substr(star + 1);
  if (!text.starts_with(pattern.substr(0, star))) return false;
  for (size_t at = star; at <= text.size(); ++at) {
    if (Matches(rest, text.substr(at))) return true;
    if (rest.empty()) return true;
  }
  return false;
}

// By process: threads that help (autograd, loaders) belong to the range of the
// thread that waits for them.
using Regions = std::map<StringId, IntervalSet>;

Result<Regions> FindRegions(const Trace& trace, const std::string& name) {
  std::vector<int8_t> known(trace.strings.size(), -1);
  std::map<StringId, std::vector<Interval>> found;
  size_t count = 0;
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    const Kind kind = trace.slices.kind[i];
    if (kind != Kind::kAnnotation && kind != Kind::kOp && kind != Kind::kPython)
      continue;
    int8_t& is = known[trace.slices.name[i].value];
    if (is < 0) is = Matches(name, trace.strings[trace.slices.name[i]]);
    if (is == 0) continue;
    const SliceId s(i);
    found[trace.TrackOf(s).pid].push_back({trace.Start(s), trace.End(s)});
    ++count;
  }
  if (count == 0) {
    return Fail(UsageError(
        "⟨range⟩: no range of the trace is named '" + name + "'",
        "⟨lamina⟩ query TRACE 'SELECT DISTINCT name FROM annotation' lists "
        "them; '*' stands for any text"));
  }
  Regions regions;
  for (auto& [pid, intervals] : found) {
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) {
                return a.start_ns < b.start_ns;
              });
    for (const Interval& one : intervals) regions[pid].AppendSorted(one);
  }
  return regions;
}

// The part of a span that lies in regions, from its first begin there to its
// last end; empty: none.
Interval Inside(const IntervalSet& region, Interval span) {
  const auto& parts = region.intervals();
  auto first = std::upper_bound(
      parts.begin(), parts.end(), span.start_ns,
      [](int64_t ns, const Interval& part) { return ns < part.end_ns; });
  if (first == parts.end() ||
      first->start_ns > std::max(span.start_ns, span.end_ns - 1))
    return {0, -1};
  auto last = first;
  while (std::next(last) != parts.end() &&
         std::next(last)->start_ns < span.end_ns)
    ++last;
  return {std::max(span.start_ns, first->start_ns),
          std::min(span.end_ns, last->end_ns)};
}

bool Holds(const IntervalSet& region, int64_t time_ns) {
  return Inside(region, {time_ns, time_ns}).length_ns() >= 0;
}

}  // namespace

Status LimitToRange(Trace& trace, const std::string& name, int threads) {
  LAMINA_ASSIGN(const Regions regions, FindRegions(trace, name));
  IntervalSet any;
  {
    std::vector<Interval> all;
    for (const auto& [pid, region] : regions) {
      const auto parts = region.intervals();
      all.insert(all.end(), parts.begin(), parts.end());
    }
    std::sort(all.begin(), all.end(), [](const Interval& a, const Interval& b) {
      return a.start_ns < b.start_ns;
    });
    for (const Interval& one : all) any.AppendSorted(one);
  }
  tree::Options options;
  options.threads = threads;
  const tree::Tree tree = tree::Tree::Build(trace, options);
  trace::Slices& slices = trace.slices;
  size_t to = 0;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    const SliceId s(i);
    Interval kept{trace.Start(s), trace.End(s)};
    if (trace::IsDevice(slices.kind[i])) {
      const tree::NodeId launch = tree.launch(s);
      if (launch.valid()) {
        const SliceId call = tree.slice(launch);
        const auto own = regions.find(trace.TrackOf(call).pid);
        if (own == regions.end() || !Holds(own->second, trace.Start(call)))
          continue;
      } else if (!Holds(any, trace.Start(s))) {
        continue;
      }
    } else {
      const auto own = regions.find(trace.TrackOf(s).pid);
      kept = Inside(own == regions.end() ? any : own->second, kept);
      if (kept.length_ns() < 0) continue;
    }
    slices.MoveRow(i, to);
    slices.start_ns[to] = kept.start_ns;
    slices.dur_ns[to] = kept.length_ns();
    ++to;
  }
  slices.Truncate(to);
  trace.streams.clear();
  trace.device_order.clear();
  trace::MakeStreams(trace, threads);
  if (to > 0) {
    trace.first_ns =
        *std::min_element(slices.start_ns.begin(), slices.start_ns.end());
  }
  size_t parts = 0;
  for (const auto& [pid, region] : regions) parts += region.intervals().size();
  trace.diagnostics.Add(trace::Effect::kInfo, "range",
                        "Only what happened in, or was launched from, ranges "
                        "named '" +
                            name + "': " + Counted(parts, "part") +
                            " of the recording.",
                        trace::Diagnostics::kNoOffset, parts);
  return {};
}

}  // namespace lamina::engine
