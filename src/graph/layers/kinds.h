// SPDX-License-Identifier: Apache-2.0
//
// Layers that are alike, and those that are not: mostly a fusion that missed
// one layer.
#pragma once

#include <string>
#include <vector>

#include "graph/layers/groups.h"
#include "graph/layers/layers.h"
#include "graph/layers/rules.h"
#include "lamina/result.h"

namespace lamina::graph {

// Layers of one stack with the same signature: for each node in order its
// normalised target, the positions of its operands inside the layer, its number
// of weights and its result. Names and addresses do not enter.
struct Kind {
  uint32_t stack = 0;
  std::vector<Place> layers;
  // "odd": few layers among many; "first": a run at the begin of the stack
  // (dense layers before experts); "edge": the first or last layer, different
  // in its norms only; else empty.
  std::string note;
  // How its first layer differs from the nearest other kind; empty if there is
  // none.
  std::string difference;
};

struct Kinds {
  std::vector<Kind> kinds;  // by first layer
  std::vector<uint32_t> of_layer;
};

Kinds FindKinds(const Graph& graph, const Layers& layers,
                const std::vector<Group>& groups);

// "A", "B", ... by position.
std::string KindName(uint32_t kind);

// The numbers of its layers: "0-2, 5".
std::string LayersOf(const Kind& kind, const Layers& layers);

// The text of one node in a signature.
std::string SignatureOf(const Graph& graph, NodeId id,
                        const std::vector<uint32_t>& position_in_layer);

// "0-2, 5" for numbers in order.
std::string RangesOf(const std::vector<uint32_t>& numbers);

// Layers as tables and notes: the overview of `lamina graph layers`.

// Tables `kinds` (one row per kind of layer), `parts` (what stands in front of
// and behind the layers), `layers` (one row per layer), `boundaries`,
// `layer_nodes` (one row per op of the graph); notes about odd layers and gaps
// in the numbers.
ResultSet LayerTables(const Graph& graph, const Layers& layers,
                      const std::vector<Group>& groups, const Kinds& kinds);

}  // namespace lamina::graph
