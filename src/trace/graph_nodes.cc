// SPDX-License-Identifier: Apache-2.0
#include "trace/graph_nodes.h"

namespace lamina::trace {

GraphNodes::GraphNodes(const Trace& trace) : trace_(trace) {
  rows_.reserve(trace.graph_nodes.size());
  for (uint32_t row = 0; row < trace.graph_nodes.size(); ++row) {
    const GraphNode& node = trace.graph_nodes[row];
    // The first row of an id counts: it is the one that made the node.
    rows_.try_emplace(Key(trace.tracks[node.track.value].pid, node.id), row);
  }
}

const GraphNode* GraphNodes::Root(SliceId slice) const {
  const DeviceArgs* args = trace_.Device(slice);
  if (args == nullptr || args->graph_node_id == kNoInt) return nullptr;
  const StringId process = trace_.TrackOf(slice).pid;
  int64_t id = args->graph_node_id;
  for (int hop = 0; hop <= kMaxHops; ++hop) {
    const auto it = rows_.find(Key(process, id));
    if (it == rows_.end()) return nullptr;
    const GraphNode& node = trace_.graph_nodes[it->second];
    if (node.original == kNoInt) return &node;
    id = node.original;
  }
  return nullptr;
}

}  // namespace lamina::trace
