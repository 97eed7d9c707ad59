// SPDX-License-Identifier: Apache-2.0
//
// Layers as tables and notes: the overview of `lamina graph layers`.
#pragma once

#include "graph/layers/groups.h"
#include "graph/layers/kinds.h"
#include "graph/layers/layers.h"
#include "lamina/result.h"

namespace lamina::graph {

// Tables `kinds` (one row per kind of layer), `parts` (what stands in front of
// and behind the layers), `layers` (one row per layer), `boundaries`,
// `layer_nodes` (one row per op of the graph); notes about odd layers and gaps
// in the numbers.
ResultSet LayerTables(const Graph& graph, const Layers& layers,
                      const std::vector<Group>& groups, const Kinds& kinds);

}  // namespace lamina::graph
