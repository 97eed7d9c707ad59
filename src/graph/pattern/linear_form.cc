// SPDX-License-Identifier: Apache-2.0
#include "graph/pattern/linear_form.h"

#include <algorithm>

#include "graph/target.h"
#include "graph/types.h"

namespace lamina::graph {
namespace {

bool Is(const Graph& graph, NodeId id, std::string_view op) {
  return graph[id].kind == NodeKind::kOp && MatchesTarget(graph.op(id), op);
}

bool IsReshape(const Graph& graph, NodeId id) {
  return Is(graph, id, "aten.view") || Is(graph, id, "aten.reshape");
}

std::vector<std::string_view> Dims(const Graph& graph, NodeId id) {
  const ResultText result = SplitResult(graph[id].result);
  const auto dims = SplitShape(result.shape);
  return result.tuple || !dims ? std::vector<std::string_view>() : *dims;
}

// The literals inside of a container, or behind the first operand.
std::vector<std::string_view> Numbers(const Graph& graph, NodeId id) {
  std::vector<std::string_view> out;
  const auto operands = graph.Operands(id);
  for (size_t i = 1; i < operands.size(); ++i) {
    if (operands[i].kind == OperandKind::kLiteral)
      out.push_back(operands[i].text());
  }
  return out;
}

// The weight that a node is the transpose of, as an operand.
OperandId TransposedWeight(const Graph& graph, NodeId id) {
  const std::vector<OperandId> operands = graph.TopOperands(id);
  if (operands.empty() || !graph.operand(operands[0]).IsValue()) return {};
  const NodeId weight = graph.operand(operands[0]).value();
  if (graph[weight].kind != NodeKind::kWeight) return {};
  using Texts = std::vector<std::string_view>;
  const Texts numbers = Numbers(graph, id);
  bool fits = false;
  if (Is(graph, id, "aten.t")) {
    fits = operands.size() == 1;
  } else if (Is(graph, id, "aten.permute")) {
    fits = numbers == Texts{"1", "0"} || numbers == Texts{"-1", "-2"};
  } else if (Is(graph, id, "aten.transpose")) {
    fits = numbers == Texts{"0", "1"} || numbers == Texts{"1", "0"} ||
           numbers == Texts{"-2", "-1"} || numbers == Texts{"-1", "-2"};
    // Of more than two dimensions these are others.
    const auto dims = Dims(graph, weight);
    fits = fits && (dims.empty() || dims.size() == 2);
  }
  return fits ? operands[0] : OperandId();
}

std::optional<LinearForm> ProductOf(const Graph& graph, NodeId id) {
  const std::vector<OperandId> operands = graph.TopOperands(id);
  const auto value = [&](size_t i) {
    return graph.operand(operands[i]).IsValue();
  };
  if (Is(graph, id, "aten.linear")) {
    if (operands.size() < 2 || operands.size() > 3 || !value(0) || !value(1))
      return std::nullopt;
    return LinearForm{operands[0], operands[1],
                      operands.size() == 3 ? operands[2] : OperandId(),
                      NodeId(), NodeId()};
  }
  const bool bias = Is(graph, id, "aten.addmm");
  const size_t first = bias ? 1 : 0;
  if ((!bias && !Is(graph, id, "aten.mm")) || operands.size() != first + 2 ||
      !value(first) || !value(first + 1) || (bias && !value(0)))
    return std::nullopt;
  const OperandId weight =
      TransposedWeight(graph, graph.operand(operands[first + 1]).value());
  if (!weight.valid()) return std::nullopt;
  if (bias) {
    // What is added may be a residual: a bias is a row.
    const NodeId added = graph.operand(operands[0]).value();
    const size_t dims = Dims(graph, added).size();
    if (dims != 1 && (dims != 0 || graph[added].kind != NodeKind::kWeight))
      return std::nullopt;
  }
  return LinearForm{operands[first], weight, bias ? operands[0] : OperandId(),
                    NodeId(), NodeId()};
}

// A view of a product of flat rows, which the view in front of it made flat.
std::optional<LinearForm> UnflattenedOf(const Graph& graph, NodeId id) {
  const std::vector<OperandId> operands = graph.TopOperands(id);
  if (!IsReshape(graph, id) || operands.empty() ||
      !graph.operand(operands[0]).IsValue())
    return std::nullopt;
  const NodeId product = graph.operand(operands[0]).value();
  if (graph[product].kind != NodeKind::kOp || graph.UseCount(product) != 1)
    return std::nullopt;
  auto form = ProductOf(graph, product);
  if (!form) return std::nullopt;
  const NodeId flat = graph.operand(form->input).value();
  const std::vector<OperandId> before = graph.TopOperands(flat);
  if (!IsReshape(graph, flat) || before.empty() ||
      !graph.operand(before[0]).IsValue())
    return std::nullopt;
  const auto in = Dims(graph, graph.operand(before[0]).value());
  const auto rows = Dims(graph, flat);
  const auto out = Dims(graph, id);
  const auto columns = Dims(graph, product);
  if (rows.size() != 2 || columns.size() != 2 || in.size() < 3 ||
      in.size() != out.size() || in.back() != rows.back() ||
      out.back() != columns.back() ||
      !std::equal(in.begin(), in.end() - 1, out.begin()))
    return std::nullopt;
  form->input = before[0];
  form->product = product;
  form->flat = flat;
  return form;
}

}  // namespace

std::optional<LinearForm> LinearOf(const Graph& graph, NodeId id) {
  if (graph.dialect.empty() || graph[id].kind != NodeKind::kOp)
    return std::nullopt;
  if (auto form = UnflattenedOf(graph, id)) return form;
  auto form = ProductOf(graph, id);
  if (!form || graph.UseCount(id) != 1) return form;
  const std::vector<NodeId> users = graph.Users(id);
  return UnflattenedOf(graph, users[0]) ? std::nullopt : form;
}

std::vector<NodeId> UsersOrLinears(const Graph& graph, NodeId value) {
  if (graph.dialect.empty()) return graph.Users(value);
  std::vector<NodeId> out;
  for (const NodeId user : graph.Users(value)) {
    std::vector<NodeId> linears;
    bool all = IsReshape(graph, user);
    for (const NodeId product : graph.Users(user)) {
      if (!all) break;
      all = graph.UseCount(product) == 1;
      const NodeId view = all ? graph.Users(product)[0] : NodeId();
      const auto form = all ? LinearOf(graph, view) : std::nullopt;
      all = form && form->product == product &&
            graph.operand(form->input).value() == value;
      if (all) linears.push_back(view);
    }
    if (!all || linears.empty()) linears = {user};
    out.insert(out.end(), linears.begin(), linears.end());
  }
  return out;
}

}  // namespace lamina::graph
