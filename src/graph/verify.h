// SPDX-License-Identifier: Apache-2.0
//
// Whether a graph holds together. Run on what was read (hand-made dumps) and
// after every change by a pass.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace lamina::graph {

struct Violation {
  NodeId node;
  std::string what;
};

// What is wrong with the order and the wiring: a value used before its
// definition, a name defined twice, an erased node in use, lists of users that
// do not agree with the operands. Empty for a sound graph. Linear.
std::vector<Violation> Verify(const Graph& graph);

// What may be wrong: shapes or dtypes of a use that differ from those of the
// definition (written after a change that did not refresh them), weights with
// different annotations.
std::vector<Violation> VerifyAnnotations(const Graph& graph);

// Sizes of a graph: what a table of sections shows and what pipelines compare.

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
