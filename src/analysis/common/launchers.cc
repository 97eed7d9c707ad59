// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/launchers.h"

#include <algorithm>

#include "base/interval_set.h"

namespace lamina::analysis {

Launchers CollectLaunchers(const tree::Tree& tree,
                           const std::function<bool(SliceId)>& keep,
                           const std::function<NodeId(SliceId)>& launcher_of) {
  const Trace& trace = tree.trace();
  struct Item {
    NodeId launcher;
    SliceId slice;
  };
  std::vector<Item> items;
  items.reserve(tree.launched().size());
  for (const SliceId s : tree.launched()) {
    if (keep(s)) items.push_back({launcher_of(s), s});
  }
  std::sort(items.begin(), items.end(), [&](const Item& a, const Item& b) {
    if (a.launcher != b.launcher) return a.launcher < b.launcher;
    if (trace.Start(a.slice) != trace.Start(b.slice))
      return trace.Start(a.slice) < trace.Start(b.slice);
    return trace.Uid(a.slice) < trace.Uid(b.slice);
  });
  Launchers launchers;
  launchers.work.reserve(items.size());
  for (const Item& item : items) {
    if (launchers.list.empty() || launchers.list.back().node != item.launcher) {
      const auto at = static_cast<uint32_t>(launchers.work.size());
      launchers.list.push_back({item.launcher, at, at});
    }
    launchers.work.push_back(item.slice);
    launchers.list.back().end = static_cast<uint32_t>(launchers.work.size());
  }
  std::sort(launchers.list.begin(), launchers.list.end(),
            [&](const Launcher& a, const Launcher& b) {
              const SliceId x = tree.slice(a.node);
              const SliceId y = tree.slice(b.node);
              if (trace.Start(x) != trace.Start(y))
                return trace.Start(x) < trace.Start(y);
              return trace.Uid(x) < trace.Uid(y);
            });
  return launchers;
}

int64_t SumOf(const Trace& trace, std::span<const SliceId> slices) {
  int64_t sum = 0;
  for (const SliceId s : slices) sum += trace.Duration(s);
  return sum;
}

int64_t UnionOf(const Trace& trace, std::span<const SliceId> slices) {
  if (slices.size() == 1) return trace.Duration(slices[0]);
  std::vector<Interval> intervals;
  intervals.reserve(slices.size());
  for (const SliceId s : slices)
    intervals.push_back({trace.Start(s), trace.End(s)});
  return IntervalSet::Of(std::move(intervals)).length_ns();
}

}  // namespace lamina::analysis
