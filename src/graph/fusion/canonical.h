// SPDX-License-Identifier: Apache-2.0
//
// A set of nodes as text: to compare with others, and to read.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace lamina::fusion {

// Equal for sets with the same ops, ranks, dtypes, literals and wiring in the
// same order; names do not enter. The nodes stand in order of the graph.
std::string CanonicalForm(const graph::Graph& graph,
                          const std::vector<graph::NodeId>& nodes);

// The same as lines of a pattern, with short names.
std::string FormText(const graph::Graph& graph,
                     const std::vector<graph::NodeId>& nodes);

}  // namespace lamina::fusion
