// SPDX-License-Identifier: Apache-2.0
//
// Which node of a graph belongs to which layer.
//
// Names of weights are the ground truth ("model_layers_5_..."), everything else
// follows the flow of data: a node belongs to the last layer whose values it
// consumes; what only one layer uses belongs to that layer; the inside of an
// unfused norm belongs to the layer of its weight. All passes are linear.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/layers/rules.h"

namespace lamina::graph {

// Place of a node: a position in Layers::layers, or one of these.
using Place = int32_t;
inline constexpr Place kShared = -1;  // in front of the layers, or of several
inline constexpr Place kEpilogue = INT32_MAX;

struct Layer {
  uint32_t stack = 0;  // position in Layers::stacks
  uint32_t index = 0;  // as in the names
  std::vector<NodeId> nodes;
};

struct Stack {
  std::string name;  // "model"; empty when nothing stands before "layers_N"
  Place first = 0;   // its layers: first .. first + count
  uint32_t count = 0;
};

// A norm fused with the addition of the layer before.
struct Boundary {
  NodeId node;
  Place from = 0;
  Place to = 0;
};

struct Layers {
  // By stack in order of first use, then by index.
  std::vector<Layer> layers;
  std::vector<Stack> stacks;
  std::vector<Place> place;      // by node id; weights: kShared
  std::vector<NodeId> shared;    // ops only, in order
  std::vector<NodeId> epilogue;  // ops only, in order
  std::vector<Boundary> boundaries;
  size_t absorbed = 0;          // nodes that joined the layer that uses them
  size_t norm_nodes_moved = 0;  // to the layer of the norm's weight
  // Stack with most layers, the first of equals; -1 without layers.
  int main_stack = -1;

  // By node id: weights without a layer number that several layers use.
  std::vector<bool> shared_buffer;

  Place PlaceOf(NodeId id) const { return place[id.value]; }
  bool IsSharedBuffer(NodeId id) const { return shared_buffer[id.value]; }
  // Position of a layer; -1 if there is none.
  Place Find(uint32_t stack, uint32_t index) const;
  // "5", or "vision_tower:5" outside of the main stack; "epilogue", "shared".
  std::string NameOf(Place place) const;
};

Layers FindLayers(const Graph& graph, const GroupRules& rules);

// An addition, also in place and of Python.
bool IsAddition(std::string_view op);

}  // namespace lamina::graph
