// SPDX-License-Identifier: Apache-2.0
//
// Finding a pattern in a graph, exactly or with one deviation.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/pattern/op_index.h"
#include "graph/pattern/pattern.h"

namespace lamina::graph {

// What keeps a place from being a match; in the order of what it costs to
// believe, cheapest first.
enum class Miss : uint8_t {
  kExtraUser,
  kOperandOrder,
  kStrategy,
  kLiteral,
  kDType,
  kShape,
  kExtraCast,
  kMissingCast,
  kExtraView,
  kExtraOp,
  kArity,
  kCrossesLayer,
  kOtherOp,
};
std::string_view Name(Miss miss);

struct Deviation {
  Miss miss = Miss::kExtraUser;
  NodeId node;           // where it is
  NodeId other;          // the user of kExtraUser; else invalid
  std::string evidence;  // a sentence without a full stop
};

// What a name of the pattern stands for.
struct Binding {
  NodeId node;            // values, weights
  OperandId operand;      // literals and any operands
  std::string_view text;  // literals, as written
  bool bound = false;
};

struct Match {
  std::vector<Binding> slots;  // by slot of the pattern
  std::vector<NodeId> nodes;   // by line; invalid for a cast that is missing
  NodeId extra;                // an op in between; else invalid
  std::optional<Deviation> deviation;

  NodeId anchor() const { return nodes.back(); }
  // All nodes, sorted: equal for matches of the same place.
  std::vector<NodeId> Nodes() const;
  bool Holds(NodeId id) const;
};

// Searches one pattern from its anchors.
class Finder {
 public:
  // Steps of a search per anchor, and of all searches together for patterns
  // that need thousands at every anchor. A search that needs more is given up
  // and counted.
  static constexpr size_t kMaxSteps = 50000;
  static constexpr size_t kMaxAllSteps = size_t{1} << 20;
  static constexpr size_t kStepsPerAnchor = 256;  // added to that

  Finder(const OpIndex& index, const Pattern& pattern);

  // Says whether to take a match that the search proposes. With `relaxed`
  // the match may hold a deviation, or the callee may set one.
  using Accept = std::function<bool(Match&)>;

  // The first match with this anchor that `accept` takes.
  std::optional<Match> Find(NodeId anchor, const Accept& accept);
  // Of the matches with one deviation that `accept` takes the cheapest.
  std::optional<Match> FindNear(NodeId anchor, const Accept& accept);

  const std::vector<NodeId>& anchors() const { return anchors_; }
  size_t given_up() const { return given_up_; }

 private:
  // The lines of the plan from `step` on.
  bool Search(size_t step);
  // The same with a deviation at `value`, where the line should be.
  bool PastOp(uint32_t line, NodeId value, size_t step);
  bool WithoutCast(uint32_t line, NodeId value, size_t step);
  bool WithOtherOp(uint32_t line, NodeId value, size_t step);
  bool SpentAll() const;
  bool TryNode(uint32_t line, NodeId node, size_t step);
  bool TryOperands(uint32_t line, NodeId node, size_t step, bool swapped);
  bool MatchTerm(const PatternTerm& term, OperandId operand, NodeId node);
  bool Finish();
  bool Bind(uint32_t slot, const Binding& binding);
  bool Deviate(Deviation deviation);
  void Rewind(size_t size, bool deviated);
  bool IsTarget(uint32_t line, StringId op) const;
  bool Taken(NodeId node) const;

  const Graph& graph_;
  const Pattern& pattern_;
  std::vector<std::vector<StringId>> targets_;  // by line
  std::vector<NodeId> anchors_;

  Match match_;
  std::vector<uint32_t> trail_;
  bool relaxed_ = false;
  size_t steps_ = 0;
  size_t all_steps_ = 0;
  size_t given_up_ = 0;
  const Accept* accept_ = nullptr;
  std::optional<Match> best_;
};

// Whether a node has the form of a line when only its own operands count:
// target, arity and literals, with `value` where the line has `slot`.
bool HasForm(const Graph& graph, const Pattern& pattern, uint32_t line,
             NodeId node, uint32_t slot, NodeId value);

}  // namespace lamina::graph
