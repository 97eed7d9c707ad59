// SPDX-License-Identifier: Apache-2.0
//
// Whether a graph holds together. Run on what was read (hand-made dumps) and
// after every change by a pass.
#pragma once

#include <string>
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

}  // namespace lamina::graph
