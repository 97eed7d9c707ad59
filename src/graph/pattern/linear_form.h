// SPDX-License-Identifier: Apache-2.0
//
// Products with a weight in dumps of other compilers, as the linear that rules
// are written with: aten.linear, and mm or addmm with a transposed weight,
// which is what AOT makes of it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace lamina::graph {

// Its operands are (input, weight, bias).
inline constexpr std::string_view kLinearOp = "auto_deploy.torch_linear_simple";

struct LinearForm {
  OperandId input;
  OperandId weight;
  OperandId bias;  // invalid: none
  // The product, where the node is a view that gives its rows the shape back
  // that a view in front of it took; else invalid.
  NodeId product;
  NodeId flat;  // with `product`: the view in front
};

// Nothing for other nodes, for a product whose view is one, and for all nodes
// of AutoDeploy dumps, which have that op.
std::optional<LinearForm> LinearOf(const Graph& graph, NodeId id);

// Users of a value; in place of a view that only makes rows of it for products
// the linears that those are.
std::vector<NodeId> UsersOrLinears(const Graph& graph, NodeId value);

// Dimensions of a shape as texts: numbers, symbols and what is made of them.

// "2", "s0" of "2xs0"; nothing for what is no shape.
std::optional<std::vector<std::string>> DimsOf(std::string_view shape);
std::string JoinedDims(const std::vector<std::string>& dims);

// The place that a literal names, "-1" being the last of `rank`.
std::optional<size_t> DimIndex(std::string_view text, size_t rank);

// Numbers when all are.
std::string ProductOfDims(const std::vector<std::string>& dims);
std::string SumOfDims(const std::string& a, const std::string& b);

}  // namespace lamina::graph
