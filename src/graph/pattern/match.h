// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/pattern/pattern.h"

namespace lamina::graph {

// Nodes of a graph by op.
class OpIndex {
 public:
  explicit OpIndex(const Graph& graph);
  const Graph& graph() const { return *graph_; }
  uint32_t Position(NodeId id) const { return positions_[id.value]; }
  // Ops of the graph that one of the targets names.
  std::vector<StringId> Ops(std::span<const std::string> targets) const;
  std::span<const NodeId> Nodes(StringId op) const;
  // Nodes of any of the targets, in order.
  std::vector<NodeId> Candidates(std::span<const std::string> targets) const;

 private:
  const Graph* graph_;
  std::vector<uint32_t> positions_;
  std::vector<StringId> present_;
  std::vector<std::vector<NodeId>> by_op_;  // by id of the op
};

// Finding a pattern in a graph, exactly or with one or two deviations.

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
  kMetadataLoss,  // a guard reads a value whose shape was lost
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
  // Of lines that are linears of views: products, and the views in front of
  // them that nothing else uses.
  std::vector<NodeId> inner;
  std::vector<Deviation> deviations;  // none: an exact match

  NodeId anchor() const { return nodes.back(); }
  // All nodes, sorted: equal for matches of the same place.
  std::vector<NodeId> Nodes() const;
  bool Holds(NodeId id) const;
};

// Whether `a` tells more than `b`: fewer deviations, then the cheaper ones.
bool IsCheaper(const Match& a, const Match& b);

// Searches one pattern from its anchors.
class Finder {
 public:
  // Steps of a search per anchor, and of all searches together for patterns
  // that need thousands at every anchor. A search that needs more is given up
  // and counted.
  static constexpr size_t kMaxSteps = 50000;
  static constexpr size_t kMaxAllSteps = size_t{1} << 20;
  static constexpr size_t kStepsPerAnchor = 256;  // added to that

  // With `linears` lines of kLinearOp take all that LinearOf() says is one.
  Finder(const OpIndex& index, const Pattern& pattern, bool linears = false);

  // Says whether to take a match that the search proposes. With a budget the
  // match may hold deviations, or the callee may add some.
  using Accept = std::function<bool(Match&)>;

  // The first match with this anchor that `accept` takes.
  std::optional<Match> Find(NodeId anchor, const Accept& accept);
  // Of the matches with up to `budget` deviations that `accept` takes the
  // cheapest. Of several only one may change the ops of the pattern: a place
  // that differs in two is another one.
  static constexpr size_t kMostDeviations = 2;
  std::optional<Match> FindNear(NodeId anchor, const Accept& accept,
                                size_t budget = 1);

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
  void FindInner();
  bool Bind(uint32_t slot, const Binding& binding);
  // Whether a deviation of this kind may be added.
  bool MayDeviate(Miss miss) const;
  bool Deviate(Deviation deviation);
  void Truncate(size_t deviations);
  void Rewind(size_t size, size_t deviations);
  bool IsTarget(uint32_t line, NodeId node) const;
  void AddLinearAnchors(const OpIndex& index);
  bool Taken(NodeId node) const;

  const Graph& graph_;
  const Pattern& pattern_;
  std::vector<std::vector<StringId>> targets_;  // by line
  std::vector<bool> linear_;  // by line: takes linears of any form
  std::vector<NodeId> anchors_;

  Match match_;
  std::vector<uint32_t> trail_;
  size_t budget_ = 0;  // deviations that a match may have
  size_t steps_ = 0;
  size_t all_steps_ = 0;
  size_t second_steps_ = 0;  // of searches with a budget above one
  size_t given_up_ = 0;
  const Accept* accept_ = nullptr;
  std::optional<Match> best_;
};

// Whether a node has the form of a line when only its own operands count:
// target, arity and literals, with `value` where the line has `slot`.
bool HasForm(const Graph& graph, const Pattern& pattern, uint32_t line,
             NodeId node, uint32_t slot, NodeId value);

}  // namespace lamina::graph
