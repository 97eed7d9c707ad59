// SPDX-License-Identifier: Apache-2.0
//
// What the nodes of a layer do: norm, attention, experts ...
#pragma once

#include <string_view>
#include <vector>

#include "graph/layers/layers.h"

namespace lamina::graph {

// Views into the rules; `sub` may be empty.
struct Group {
  std::string_view name;
  std::string_view sub;
};

// The group of every node of every layer, by node id; others have none.
std::vector<Group> GroupNodes(const Graph& graph, const Layers& layers,
                              const GroupRules& rules);

}  // namespace lamina::graph
