// SPDX-License-Identifier: Apache-2.0
//
// One layer as boxes and arrows: parts of the layer in frames, weights and
// kernels on the ops, what comes from outside on top.
#pragma once

#include <functional>
#include <string_view>

#include "graph/draw/labels.h"
#include "graph/layers/layer_graph.h"
#include "graph/layers/rules.h"
#include "render/dot/dot.h"

namespace lamina::graph {

// Names of a box and of a frame that are no part of a layer.
inline constexpr std::string_view kLegend = "(legend)";
inline constexpr std::string_view kOffNodes = "(not on any node)";
inline constexpr std::string_view kInputs = "Inputs";
// The label of an edge that goes around what is added to it.
inline constexpr std::string_view kResidual = "residual";

struct DrawOptions {
  bool ids = false;  // names of nodes on all boxes, not only on twins
};

// The first boxes are the nodes of the layer in their order; the box
// "(legend)" is there with kernels. The first line of the title names the
// layer, the second the dump and, with kernels, their times.
render::DotGraph DrawLayer(const LayerGraph& layer, const GroupRules& rules,
                           const DrawOptions& options = {});

// One input from outside as a box of its own.
render::DotNode DrawInput(const ExternalInput& input, const GroupRules& rules);

// What a line of a box is, for those who draw it with colours of their own.
enum class LineKind : char {
  kLabel = 'b',
  kWeight = 'w',
  kKernel = 'k',
  kSoft = 'x',  // names of nodes, kernels that are not claimed
  kText = 's',  // shapes
};
LineKind KindOf(const render::DotLine& line);

// Takes the nodes out whose op `hide` names: who used one uses its first input
// instead, and knows over what it does, by the shortest way where there are
// several. Nodes with kernels and nodes without inputs stay.
void HideNodes(LayerGraph& layer,
               const std::function<bool(std::string_view op)>& hide);

// Which nodes run on a second stream, by position: those that hang on the
// begin of one, up to its end or to where they meet the main stream again.
std::vector<bool> OnSecondStream(const LayerGraph& layer,
                                 const GroupRules& rules);

}  // namespace lamina::graph
