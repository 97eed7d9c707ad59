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

// What is gone and what came, by name.
struct Replacement {
  size_t graph = 0;  // of the dump
  size_t form = 0;   // of the alternatives of the rule
  std::vector<std::string> removed;
  std::vector<std::string> added;
};

// Notes a replacement: made in front of it.
class PlaceNotes {
 public:
  explicit PlaceNotes(const Graph& graph)
      : graph_(graph), size_(graph.size()), erased_(graph.erased().size()) {}
  Replacement Done(size_t form = 0) const;

 private:
  const Graph& graph_;
  size_t size_;
  size_t erased_;
};

struct Applied {
  size_t matches = 0;               // replacements
  std::vector<Replacement> places;  // one each
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
