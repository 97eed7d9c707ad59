// SPDX-License-Identifier: Apache-2.0
#include "graph/count.h"

#include <algorithm>

namespace lamina::graph {

Counts CountOf(const Graph& graph) {
  Counts out;
  std::vector<NodeId> inputs;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph[id];
    switch (node.kind) {
      case NodeKind::kPlaceholder:
        ++out.placeholders;
        break;
      case NodeKind::kOp:
        ++out.ops;
        break;
      case NodeKind::kOutput:
        ++out.outputs;
        break;
      case NodeKind::kWeight:
        break;
    }
    out.ambiguous += node.ambiguous ? 1 : 0;
    for (const Operand& operand : graph.Operands(id)) {
      if (operand.IsValue() && operand.nested &&
          graph[operand.value()].kind != NodeKind::kWeight)
        ++out.in_lists;
    }
    graph.Inputs(id, inputs);
    for (const NodeId input : inputs) {
      if (graph[input].kind == NodeKind::kWeight) continue;
      ++out.edges;
    }
  }
  out.weights = graph.Weights().size();
  return out;
}

std::map<std::string_view, size_t> OpCounts(const Graph& graph) {
  std::map<std::string_view, size_t> out;
  for (const NodeId id : graph.nodes()) {
    if (graph[id].kind == NodeKind::kOp) ++out[graph.op(id)];
  }
  return out;
}

}  // namespace lamina::graph
