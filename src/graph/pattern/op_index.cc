// SPDX-License-Identifier: Apache-2.0
#include "graph/pattern/op_index.h"

#include <algorithm>

#include "graph/target.h"

namespace lamina::graph {

OpIndex::OpIndex(const Graph& graph)
    : graph_(&graph),
      positions_(graph.Positions()),
      by_op_(graph.ops()->size()) {
  for (const NodeId id : graph.nodes()) {
    if (graph[id].kind != NodeKind::kOp) continue;
    std::vector<NodeId>& nodes = by_op_[graph[id].op.value];
    if (nodes.empty()) present_.push_back(graph[id].op);
    nodes.push_back(id);
  }
}

std::vector<StringId> OpIndex::Ops(std::span<const std::string> targets) const {
  std::vector<StringId> out;
  for (const StringId op : present_) {
    for (const std::string& target : targets) {
      if (MatchesTarget((*graph_->ops())[op], target)) {
        out.push_back(op);
        break;
      }
    }
  }
  return out;
}

std::span<const NodeId> OpIndex::Nodes(StringId op) const {
  return by_op_[op.value];
}

std::vector<NodeId> OpIndex::Candidates(
    std::span<const std::string> targets) const {
  std::vector<NodeId> out;
  for (const StringId op : Ops(targets))
    out.insert(out.end(), by_op_[op.value].begin(), by_op_[op.value].end());
  std::sort(out.begin(), out.end(),
            [this](NodeId a, NodeId b) { return Position(a) < Position(b); });
  return out;
}

}  // namespace lamina::graph
