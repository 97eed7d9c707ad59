// SPDX-License-Identifier: Apache-2.0
//
// Sizes of a graph: what a table of sections shows and what pipelines compare.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "graph/graph.h"

namespace lamina::graph {

struct Counts {
  size_t placeholders = 0;
  size_t ops = 0;
  size_t outputs = 0;
  size_t weights = 0;
  // Pairs of a value and a node that uses it; weights are no values.
  size_t edges = 0;
  // References to values that stand as bare names inside of lists.
  size_t in_lists = 0;
  size_t ambiguous = 0;
};
Counts CountOf(const Graph& graph);

// Ops by normalised target, by name.
std::map<std::string_view, size_t> OpCounts(const Graph& graph);

}  // namespace lamina::graph
