// SPDX-License-Identifier: Apache-2.0
//
// What differs between two graphs in what they compute. Names of values,
// addresses, counters and the order of independent ops do not count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "lamina/result.h"

namespace lamina::graph {

enum class Change : uint8_t {
  kAdded,
  kRemoved,
  kRewired,       // other values as operands
  kLiteral,       // other numbers, texts or lists
  kShape,         // another result; renamed symbols are the same
  kMetadataLost,  // the result was known and is not any more
  kMetadataGained,
};
std::string_view ChangeName(Change change);

struct Difference {
  Change change = Change::kAdded;
  NodeId a;  // invalid when added
  NodeId b;  // invalid when removed
  std::string detail;
};

// Both graphs must share their ops (ParseOptions::ops). Ops correspond when
// they are equal with all that they depend on, else by the longest common
// subsequence of what is left. In order of the second graph, then of the first.
std::vector<Difference> Compare(const Graph& a, const Graph& b);

// Tables `graph_changes` and `graph_change_counts`.
ResultSet DiffTables(const Graph& a, const Graph& b,
                     const std::vector<Difference>& differences);

}  // namespace lamina::graph
