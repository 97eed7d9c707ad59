// SPDX-License-Identifier: Apache-2.0
//
// A rule as a change of a graph.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/pattern/rewrite.h"
#include "graph/pattern/rule.h"

namespace lamina::graph {

struct ApplyOptions {
  OptionOf option;
  // Ids of guards that a dump cannot answer and that the user vouches for.
  std::set<std::string> assume;
  // Layer of each node by id, as in FindOptions.
  std::vector<int32_t> layers;
};

struct Applied {
  size_t matches = 0;  // replacements
  // Matches that were left, by reason.
  std::map<std::string, size_t> left;
};

// Whether the rule says what to put in place of its matches.
bool CanRewrite(const Rule& rule);

// Replaces the matches of a rule in order; where two overlap the first wins.
// With Counting::kFixedPoint until none is left.
Applied ApplyRule(Graph& graph, const Rule& rule, const ApplyOptions& options);

// How many replacements ApplyRule() would make, without changing the graph.
size_t CountReplacements(const Graph& graph, const Rule& rule);

}  // namespace lamina::graph
