// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/replays.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/common/replayed.h"
#include "compare/cudagraph/calls.h"
#include "trace/categories.h"

namespace lamina::cudagraph {
namespace {

using trace::SliceId;

// Nodes are numbered in the order of capture, which parallel branches do not
// keep when they run. False where the work has no such order.
bool SortByNode(const trace::Trace& trace, std::vector<SliceId>& work) {
  std::vector<std::pair<int64_t, SliceId>> nodes;
  for (const SliceId s : work) {
    const trace::DeviceArgs* args = trace.Device(s);
    if (args == nullptr || args->graph_node_id == trace::kNoInt) return false;
    nodes.emplace_back(args->graph_node_id, s);
  }
  std::stable_sort(
      nodes.begin(), nodes.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i].first == nodes[i - 1].first) return false;
  }
  for (size_t i = 0; i < nodes.size(); ++i) work[i] = nodes[i].second;
  return true;
}

}  // namespace

std::vector<Replay> FindReplays(const analysis::Context& context,
                                std::optional<int64_t> batch) {
  const trace::Trace& trace = context.trace;
  std::vector<Replay> replays;
  std::map<uint32_t, uint32_t> by_launch;  // node -> replay
  for (const SliceId s : trace.device_slices()) {
    const tree::NodeId launch = context.tree.launch(s);
    if (!launch.valid() || !trace::IsGraphLaunch(context.tree.name(launch)))
      continue;
    const auto [it, is_new] = by_launch.try_emplace(
        launch.value, static_cast<uint32_t>(replays.size()));
    if (is_new) {
      Replay replay;
      replay.launch = context.tree.slice(launch);
      replay.batch = batch.value_or(
          BatchOf(trace.strings[context.steps.RequestsAt(launch)]));
      replays.push_back(std::move(replay));
    }
    replays[it->second].work.push_back(s);
  }
  for (Replay& replay : replays) {
    std::stable_sort(replay.work.begin(), replay.work.end(),
                     [&](SliceId a, SliceId b) {
                       return trace.Start(a) != trace.Start(b)
                                  ? trace.Start(a) < trace.Start(b)
                                  : a < b;
                     });
    replay.by_node = SortByNode(trace, replay.work);
    const trace::DeviceArgs* const args = trace.Device(replay.work[0]);
    if (args != nullptr) replay.graph_id = args->graph_id;
  }
  std::stable_sort(replays.begin(), replays.end(),
                   [&](const Replay& a, const Replay& b) {
                     return trace.Start(a.launch) < trace.Start(b.launch);
                   });
  for (uint32_t i = 0; i < replays.size(); ++i) {
    replays[i].number = i;
    replays[i].step = context.steps.StepAt(trace.Start(replays[i].launch));
  }
  return replays;
}

}  // namespace lamina::cudagraph
