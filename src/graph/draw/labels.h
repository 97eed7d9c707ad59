// SPDX-License-Identifier: Apache-2.0
//
// Words of a drawing: ops, kernels, weights and shapes as people call them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/layers/layer_graph.h"
#include "graph/layers/rules.h"

namespace lamina::graph {

// Between the sizes of a shape, and before a number of alike ones.
inline constexpr std::string_view kTimes = "\u00d7";

// "s72×s70×4096"; unknown shapes are empty.
std::string OneShape(std::string_view shape);

// "s72×s70×4096 bf16"; several results joined by ", ".
std::string ShapeLabel(const LayerNode& node);

// What people call the weights of a node: "q_proj", "input norm",
// "post-attention norm", "gate up down", "router", "experts ×256". Without
// stack, layer number, owner (self_attn, mlp) and _weight; biases and scales
// only where their weight is not there. Those that differ in a number only, or
// in what stands in front of their last word, are one line.
std::vector<std::string> WeightLabels(const LayerNode& node,
                                      const GroupRules& rules);

// The name of an op for people in at most 28 bytes, cut inside.
std::string OpLabel(std::string_view op, const GroupRules& rules);

// The name of a kernel in at most 34 bytes: without namespaces, then without
// what most names have, then cut inside.
std::string KernelLabel(std::string_view name);

}  // namespace lamina::graph
