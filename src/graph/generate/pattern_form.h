// SPDX-License-Identifier: Apache-2.0
//
// A rule as search and replacement functions for Inductor's pattern matcher,
// with dummy arguments of the shapes that a dump shows.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "graph/generate/example.h"
#include "graph/generate/tree_api.h"
#include "graph/generate/walk.h"

namespace lamina::generate {

// Why a walk over the graph fits the rule better than a pattern; none: the
// pattern says the same.
std::vector<std::string> ReasonsForWalk(const graph::Rule& rule,
                                        const TreeApi& api);

// Places of one alternative that differ in ops or element types.
struct PatternPlaces {
  size_t alternative = 0;
  std::vector<Example> examples;
};

// Functions and the list _PATTERNS. Errors (usage): something of the rule
// that a pattern cannot say, named.
Result<std::string> PatternModule(const graph::Rule& rule,
                                  const std::vector<PatternPlaces>& places,
                                  Needs& needs);

}  // namespace lamina::generate
