// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/kernel_groups.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace lamina::analysis {
namespace {

constexpr uint32_t kNoRow = std::numeric_limits<uint32_t>::max();

}  // namespace

NodeId KernelParent(const Context& context, SliceId s) {
  const NodeId launch = context.tree.launch(s);
  if (!launch.valid()) return launch;
  const NodeId op = context.tree.EnclosingOp(launch);
  return op.valid() ? op : launch;
}

StringId NameOf(const Context& context, NodeId node) {
  return node.valid()
             ? context.trace.slices.name[context.tree.slice(node).value]
             : StringId();
}

KernelGroups KernelGroups::Build(const Context& context) {
  const Trace& trace = context.trace;
  using Key = std::tuple<StringId, StringId, uint32_t>;
  absl::flat_hash_map<Key, uint32_t> known;
  std::vector<KernelGroup> groups;
  KernelGroups out;
  out.row_of.assign(trace.device.size(), kNoRow);
  for (const SliceId s : trace.device_slices()) {
    const NodeId parent = KernelParent(context, s);
    const Key key(trace.slices.name[s.value], NameOf(context, parent),
                  trace.Device(s)->lane.value);
    const auto [it, is_new] =
        known.try_emplace(key, static_cast<uint32_t>(groups.size()));
    if (is_new) groups.push_back({s, parent});
    KernelGroup& group = groups[it->second];
    group.sum_ns += trace.Duration(s);
    ++group.count;
    out.row_of[trace.slices.detail[s.value]] = it->second;
  }
  std::vector<uint32_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (groups[a].sum_ns != groups[b].sum_ns)
      return groups[a].sum_ns > groups[b].sum_ns;
    return trace.Uid(groups[a].first) < trace.Uid(groups[b].first);
  });
  std::vector<uint32_t> rank(groups.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = i;
    out.rows.push_back(groups[order[i]]);
  }
  for (uint32_t& row : out.row_of) {
    if (row != kNoRow) row = rank[row];
  }
  return out;
}

}  // namespace lamina::analysis
