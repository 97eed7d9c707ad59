// SPDX-License-Identifier: Apache-2.0
//
// The units that forms are made of: a light op with everything that only it
// uses.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "graph/fusion/traffic.h"
#include "graph/graph.h"

namespace lamina::fusion {

// The ops of a graph in its order, each with its class.
class ClassedOps {
 public:
  ClassedOps(const graph::Graph& graph, const OpTable& ops);

  const std::vector<graph::NodeId>& order() const { return order_; }
  OpClass of(graph::NodeId id) const { return class_[id.value]; }
  bool IsLight(graph::NodeId id) const { return of(id) == OpClass::kLight; }
  bool IsView(graph::NodeId id) const { return of(id) == OpClass::kView; }

 private:
  std::vector<graph::NodeId> order_;
  std::vector<OpClass> class_;  // by node
};

struct Cone {
  graph::NodeId root;
  std::vector<graph::NodeId> nodes;  // in order of the graph, views included
  size_t light = 0;
};

struct Cones {
  std::vector<Cone> list;
  // Cones that feed each other, or read one value that few read.
  std::vector<std::set<uint32_t>> links;
};

Cones FindCones(const graph::Graph& graph, const ClassedOps& ops);

}  // namespace lamina::fusion
