// SPDX-License-Identifier: Apache-2.0
//
// One layer as boxes and arrows: parts of the layer in frames, weights and
// kernels on the ops, what comes from outside on top.
#pragma once

#include <functional>
#include <string_view>

#include "graph/layers/layer_graph.h"
#include "graph/layers/rules.h"
#include "render/dot/dot.h"

namespace lamina::graph {

render::DotGraph DrawLayer(const LayerGraph& layer, const GroupRules& rules);

// Takes the nodes out whose op `hide` names: who used one uses its first input
// instead. Nodes with kernels and nodes without inputs stay.
void HideNodes(LayerGraph& layer,
               const std::function<bool(std::string_view op)>& hide);

// Which nodes run on a second stream, by position: those that hang on the
// begin of one, up to its end or to where they meet the main stream again.
std::vector<bool> OnSecondStream(const LayerGraph& layer,
                                 const GroupRules& rules);

// "s72×s70×4096 bf16"; several results joined by ", ".
std::string ShapeLabel(const LayerNode& node);

// "mlp_experts_*_gate_proj ×256" for weights that differ in a number only;
// without stack, layer number and _weight.
std::vector<std::string> WeightLabels(const LayerNode& node);

}  // namespace lamina::graph
