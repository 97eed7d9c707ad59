// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lamina::graph {

// Nodes of a graph by op.
class OpIndex {
 public:
  explicit OpIndex(const Graph& graph);
  const Graph& graph() const { return *graph_; }
  uint32_t Position(NodeId id) const { return positions_[id.value]; }
  // Ops of the graph that one of the targets names.
  std::vector<StringId> Ops(std::span<const std::string> targets) const;
  std::span<const NodeId> Nodes(StringId op) const;
  // Nodes of any of the targets, in order.
  std::vector<NodeId> Candidates(std::span<const std::string> targets) const;

 private:
  const Graph* graph_;
  std::vector<uint32_t> positions_;
  std::vector<StringId> present_;
  std::vector<std::vector<NodeId>> by_op_;  // by id of the op
};

}  // namespace lamina::graph
