// SPDX-License-Identifier: Apache-2.0
//
// Unfused subgraphs that repeat, found without a list of patterns: the units
// they are made of (cones), a form of each set that compares as text, and the
// forms that repeat.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/fusion/traffic.h"
#include "graph/graph.h"

namespace lamina::fusion {

// A set of nodes as text: to compare with others, and to read.

// Equal for sets with the same ops, ranks, dtypes, literals and wiring in the
// same order; names do not enter. The nodes stand in order of the graph.
std::string CanonicalForm(const graph::Graph& graph,
                          const std::vector<graph::NodeId>& nodes);

// The same as lines of a pattern, with short names.
std::string FormText(const graph::Graph& graph,
                     const std::vector<graph::NodeId>& nodes);

// The units that forms are made of: a light op with everything that only it
// uses.

// The ops of a graph in its order, each with its class.
class ClassedOps {
 public:
  ClassedOps(const graph::Graph& graph, const OpTable& ops);

  const std::vector<graph::NodeId>& order() const { return order_; }
  OpClass of(graph::NodeId id) const { return class_[id.value]; }
  bool IsLight(graph::NodeId id) const { return of(id) == OpClass::kLight; }
  bool IsView(graph::NodeId id) const { return of(id) == OpClass::kView; }

 private:
  std::vector<graph::NodeId> order_;
  std::vector<OpClass> class_;  // by node
};

struct Cone {
  graph::NodeId root;
  std::vector<graph::NodeId> nodes;  // in order of the graph, views included
  size_t light = 0;
};

struct Cones {
  std::vector<Cone> list;
  // Cones that feed each other, or read one value that few read.
  std::vector<std::set<uint32_t>> links;
};

Cones FindCones(const graph::Graph& graph, const ClassedOps& ops);

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
