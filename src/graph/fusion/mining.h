// SPDX-License-Identifier: Apache-2.0
//
// Unfused subgraphs that repeat, found without a list of patterns.
//
// The units are cones: a light op with everything that only it uses, directly
// or through views. All nodes of a cone can be computed where its root is, and
// nothing of it is needed outside. A form is a cone, a connected and convex
// union of a few cones, or a part of a cone that occurs in more places than
// the whole; equal forms are those with equal ops, ranks, dtypes, literals and
// wiring. Only closed forms are kept: those that no larger form accompanies
// everywhere. The number of unions that are looked at is bounded.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/fusion/traffic.h"
#include "graph/graph.h"

namespace lamina::fusion {

enum class FormKind : uint8_t {
  kElementWise,
  kNorm,
  kEpilogue,   // behind a matrix product, attention or experts
  kPrologue,   // in front of one
  kAttention,  // close to attention or rotary embedding
  kCollective,
  kCopies,    // casts and copies alone
  kSiblings,  // linears that read one value
};
std::string_view Name(FormKind kind);

struct Form {
  FormKind kind = FormKind::kElementWise;
  // Each occurrence in order of the graph; its nodes in order, views included.
  std::vector<std::vector<graph::NodeId>> occurrences;
  size_t light_nodes = 0;  // without views
};

struct MiningOptions {
  // Occurrences a form needs at least.
  size_t min_occurrences = 2;
  size_t max_nodes = 12;  // light nodes of a form
  size_t max_cones = 4;
  size_t max_forms = 20000;
  size_t max_sets = 200000;  // unions looked at
};

struct Mined {
  std::vector<Form> forms;
  bool bounded = false;  // a bound was reached: forms are missing
};

Mined MineForms(const graph::Graph& graph, const OpTable& ops,
                const MiningOptions& options);

}  // namespace lamina::fusion
