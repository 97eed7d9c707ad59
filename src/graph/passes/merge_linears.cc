// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/merge_linears.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/decimal.h"
#include "graph/types.h"

namespace lamina::graph {
namespace {

// One linear of a group.
struct Member {
  NodeId node;
  NodeId weight;
  int64_t rows = 0;  // of the weight: width of the result
};

class Merger {
 public:
  Merger(Graph& graph, const Rule& rule) : graph_(graph), rule_(rule) {
    split_ = std::any_of(
        rule.guards.begin(), rule.guards.end(), [](const Guard& guard) {
          return !guard.check.empty() && guard.check[0].text == "all_users";
        });
  }

  // False: why not is in `reason`.
  bool Merge(NodeId input, std::string& reason) {
    added_.clear();
    if (!Collect(input, reason)) return false;
    const PlaceNotes notes(graph_);
    std::vector<NodeId> users;
    std::vector<NodeId> inputs = {input};
    for (const Member& member : members_) {
      for (const NodeId user : graph_.Users(member.node)) users.push_back(user);
    }
    const NodeId place = PlaceFor(graph_, inputs, users, members_[0].node);
    if (!place.valid()) {
      reason = "an operand is defined behind a user of an output";
      return false;
    }
    const std::string shape(SplitResult(graph_[members_[0].node].result).shape);
    const std::string dtype(SplitResult(graph_[members_[0].node].result).dtype);
    const std::string head = shape.substr(0, shape.rfind('x') + 1);
    int64_t rows = 0;
    for (const Member& member : members_) rows += member.rows;
    const NodeId whole =
        Add(place, "auto_deploy.torch_linear_simple.default",
            fmt::format("{}, %{} : {}x{} : {}, None", UseOf(graph_, input),
                        graph_.FreshName(fmt::format("fused_weight_{}", made_)),
                        rows, columns_,
                        SplitResult(graph_[members_[0].weight].result).dtype),
            fmt::format("{}{} : {}", head, rows, dtype));
    if (!whole.valid() || !AddPieces(place, whole, head, dtype)) {
      for (; !added_.empty(); added_.pop_back())
        EraseUnused(graph_, {added_.back()});
      reason = "a new line is not one of a dump";
      return false;
    }
    for (const Member& member : members_) EraseUnused(graph_, {member.node});
    ++made_;
    place_ = notes.Done();
    return true;
  }

  // What the last Merge() that returned true did.
  const Replacement& place() const { return place_; }

 private:
  // Beyond this a shape is corrupt; sums stay far from overflow.
  static constexpr int64_t kMostRows = int64_t{1} << 40;

  bool Collect(NodeId input, std::string& reason) {
    members_.clear();
    columns_.clear();
    const Pattern& pattern = rule_.alternatives[0].pattern;
    const uint32_t shared = pattern.lines[0].operands[0].slot;
    for (const NodeId user : graph_.Users(input)) {
      if (!HasForm(graph_, pattern, 0, user, shared, input)) continue;
      const std::vector<OperandId> operands = graph_.TopOperands(user);
      Member member;
      member.node = user;
      member.weight = graph_.operand(operands[1]).value();
      const auto dims =
          SplitShape(SplitResult(graph_[member.weight].result).shape);
      const auto rows = dims && dims->size() == 2 ? ParseInt((*dims)[0])
                                                  : std::optional<int64_t>();
      if (!rows || *rows < 0 || *rows > kMostRows) {
        reason = "the shape of a weight is not known";
        return false;
      }
      const std::string columns((*dims)[1]);
      if (!columns_.empty() && columns != columns_) {
        reason = "the weights have different widths";
        return false;
      }
      columns_ = columns;
      member.rows = *rows;
      members_.push_back(member);
    }
    if (members_.size() >= 2) return true;
    reason = "an earlier replacement took the linears";
    return false;
  }

  // False when a line does not parse; uses are as they were then.
  bool AddPieces(NodeId place, NodeId whole, const std::string& head,
                 const std::string& dtype) {
    NodeId split;
    if (split_) {
      std::string shapes;
      std::string dtypes;
      for (const Member& member : members_) {
        shapes += fmt::format("{}{}{}", shapes.empty() ? "" : ", ", head,
                              member.rows);
        dtypes += (dtypes.empty() ? "" : ", ") + dtype;
      }
      split = Add(place, "fn.split_output", UseOf(graph_, whole),
                  fmt::format("({}) : ({})", shapes, dtypes));
    }
    if (split_ && !split.valid()) return false;
    int64_t at = 0;
    std::vector<NodeId> pieces;
    for (size_t i = 0; i < members_.size(); ++i) {
      const Member& member = members_[i];
      const std::string result(graph_[member.node].result);
      const NodeId piece =
          split_ ? Add(place, "builtin.getitem",
                       fmt::format("{}, {}", UseOf(graph_, split), i), result)
                 : Add(place, "aten.narrow.default",
                       fmt::format("{}, -1, {}, {}", UseOf(graph_, whole), at,
                                   member.rows),
                       result);
      if (!piece.valid()) return false;
      pieces.push_back(piece);
      at += member.rows;
    }
    for (size_t i = 0; i < members_.size(); ++i)
      graph_.ReplaceUses(members_[i].node, pieces[i]);
    return true;
  }

  // Invalid when the line does not parse.
  NodeId Add(NodeId place, std::string_view target, const std::string& operands,
             const std::string& result) {
    const auto added = graph_.Insert(
        place,
        fmt::format("%{} = {}({}) : {}", graph_.FreshName(BaseName(target)),
                    PrintedTarget(target), operands, result));
    if (!added) return {};
    added_.push_back(*added);
    return *added;
  }

  Graph& graph_;
  const Rule& rule_;
  bool split_ = false;
  std::vector<Member> members_;
  std::vector<NodeId> added_;  // by the replacement at hand
  std::string columns_;
  Replacement place_;
  size_t made_ = 0;
};

}  // namespace

Applied MergeLinears(Graph& graph, const Rule& rule,
                     const ApplyOptions& options) {
  Applied out;
  const OpIndex index(graph);
  FindOptions find;
  find.option = options.option;
  find.layers = options.layers;
  const RuleMatches found = FindRule(index, rule, find);
  Merger merger(graph, rule);
  for (const RuleMatch& match : found.matches) {
    std::string reason;
    if (merger.Merge(match.shared, reason)) {
      ++out.matches;
      out.places.push_back(merger.place());
    } else {
      ++out.left[reason];
    }
  }
  return out;
}

}  // namespace lamina::graph
