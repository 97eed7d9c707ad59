// SPDX-License-Identifier: Apache-2.0
#include "graph/verify.h"

#include <absl/container/flat_hash_set.h>

#include "base/escape.h"
#include "graph/types.h"

namespace lamina::graph {
namespace {

std::string Named(const Graph& graph, NodeId id) {
  return "'%" + EscapeTerminal(graph[id].name) + "'";
}

}  // namespace

std::vector<Violation> Verify(const Graph& graph) {
  std::vector<Violation> out;
  const std::vector<uint32_t> position = graph.Positions();
  std::vector<uint32_t> uses(graph.size(), 0);
  absl::flat_hash_set<std::string_view> names;
  NodeId previous;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph[id];
    if (graph.Previous(id) != previous)
      out.push_back({id, "the order of the nodes is broken"});
    previous = id;
    if (node.erased) out.push_back({id, "an erased node stands in the order"});
    if (node.kind != NodeKind::kOutput && !names.insert(node.name).second)
      out.push_back({id, Named(graph, id) + " is defined a second time"});
    for (const Operand& operand : graph.Operands(id)) {
      if (operand.owner() != id)
        out.push_back({id, "an operand belongs to another node"});
      if (!operand.IsValue()) continue;
      const NodeId value = operand.value();
      ++uses[value.value];
      if (graph[value].erased) {
        out.push_back({id, Named(graph, value) + " is used and was erased"});
      } else if (graph[value].kind != NodeKind::kWeight &&
                 position[value.value] >= position[id.value]) {
        out.push_back(
            {id, Named(graph, value) + " is used before its definition"});
      }
    }
  }
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const NodeId id(i);
    size_t listed = 0;
    graph.ForEachUse(id, [&](OperandId, const Operand& operand) {
      listed += operand.value() == id ? 1 : 0;
    });
    if (listed != uses[i] || graph.UseCount(id) != uses[i])
      out.push_back({id, "the list of users of " + Named(graph, id) +
                             " does not agree with the operands"});
    if (graph[id].kind == NodeKind::kWeight && names.contains(graph[id].name))
      out.push_back({id, Named(graph, id) + " is both a weight and defined"});
  }
  return out;
}

std::vector<Violation> VerifyAnnotations(const Graph& graph) {
  std::vector<Violation> out;
  for (const NodeId id : graph.nodes()) {
    for (const Operand& operand : graph.Operands(id)) {
      if (!operand.IsValue() || operand.replaced) continue;
      const size_t colon = operand.text().find(" : ");
      if (colon == std::string_view::npos) continue;
      const std::string_view used = operand.text().substr(colon + 3);
      const Node& value = graph[operand.value()];
      // Several results and missing metadata show as "?".
      if (used == value.result || used.starts_with("? : ") ||
          value.result.starts_with("? : "))
        continue;
      const ResultText a = SplitResult(used);
      const ResultText b = SplitResult(value.result);
      if (a.dtype == b.dtype &&
          CanonicalShape(a.shape) == CanonicalShape(b.shape))
        continue;
      out.push_back({id, "uses " + Named(graph, operand.value()) + " as '" +
                             EscapeTerminal(used) + "', which is '" +
                             EscapeTerminal(value.result) + "'"});
    }
  }
  return out;
}

}  // namespace lamina::graph
