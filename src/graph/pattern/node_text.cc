// SPDX-License-Identifier: Apache-2.0
//
// How values, operands and targets are written in a new line.
#include <algorithm>

#include "graph/pattern/rewrite.h"
#include "graph/types.h"

namespace lamina::graph {

std::string AnnotationOf(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.result.empty()) return std::string(kUnknownUse);
  return SplitResult(node.result).tuple ? "? : tuple"
                                        : std::string(node.result);
}

std::string UseOf(const Graph& graph, NodeId id) {
  return "%" + std::string(graph[id].name) + " : " + AnnotationOf(graph, id);
}

std::string OperandText(const Graph& graph, OperandId id) {
  const Operand& operand = graph.operand(id);
  if (operand.IsValue()) {
    if (operand.nested) return std::string(graph[operand.value()].name);
    return UseOf(graph, operand.value());
  }
  const std::string_view text = operand.text();
  std::string out;
  size_t done = 0;
  for (uint32_t i = 1; i <= operand.extent(); ++i) {
    const Operand& inner = graph.operand(OperandId(id.value + i));
    if (!inner.replaced) continue;
    const auto at = static_cast<size_t>(inner.text().data() - text.data());
    out += text.substr(done, at - done);
    out += graph[inner.value()].name;
    done = at + inner.text().size();
  }
  return out + std::string(text.substr(done));
}

std::string PrintedTarget(std::string_view target) {
  if (target.starts_with("builtin."))
    return "<built-in function " + std::string(target.substr(8)) + ">";
  if (target.starts_with("fn."))
    return "<function " + std::string(target.substr(3)) + " at 0x0>";
  return std::string(target);
}

std::string BaseName(std::string_view target) {
  const size_t dot = target.find('.');
  std::string name(target.substr(dot + 1));
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

}  // namespace lamina::graph
