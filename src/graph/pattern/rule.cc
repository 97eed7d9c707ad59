// SPDX-License-Identifier: Apache-2.0
#include "graph/pattern/rule.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "base/escape.h"
#include "base/stop.h"
#include "graph/pattern/linear_form.h"

namespace lamina::graph {
namespace {

class RuleFinder {
 public:
  RuleFinder(const OpIndex& index, const Rule& rule, const FindOptions& options)
      : index_(index), graph_(index.graph()), rule_(rule), options_(options) {
    for (const Alternative& alternative : rule.alternatives)
      finders_.emplace_back(index, alternative.pattern, options.linears);
  }

  RuleMatches Run() {
    std::vector<NodeId> anchors;
    for (const Finder& finder : finders_) {
      anchors.insert(anchors.end(), finder.anchors().begin(),
                     finder.anchors().end());
    }
    // From the last to the first: of two matches with the same nodes the one
    // whose last line comes last is the one that is meant.
    std::sort(anchors.begin(), anchors.end(), [this](NodeId a, NodeId b) {
      return index_.Position(a) > index_.Position(b);
    });
    anchors.erase(std::unique(anchors.begin(), anchors.end()), anchors.end());
    for (const NodeId anchor : anchors) FindAt(anchor, false);
    if (options_.near_misses) {
      for (const NodeId anchor : anchors) {
        if (!matched_.contains(anchor)) FindAt(anchor, true);
      }
    }
    for (const Finder& finder : finders_) out_.given_up += finder.given_up();
    const auto by_place = [this](const RuleMatch& a, const RuleMatch& b) {
      return index_.Position(a.match.anchor()) <
             index_.Position(b.match.anchor());
    };
    std::sort(out_.matches.begin(), out_.matches.end(), by_place);
    std::sort(out_.near_misses.begin(), out_.near_misses.end(), by_place);
    return std::move(out_);
  }

 private:
  // The value that every line of a group rule consumes at its first place.
  NodeId SharedOf(const Pattern& pattern, const Match& match) const {
    const uint32_t slot = pattern.anchor().operands.empty()
                              ? kNoSlot
                              : pattern.anchor().operands[0].slot;
    return slot == kNoSlot ? NodeId() : match.slots[slot].node;
  }

  void FindAt(NodeId anchor, bool near) {
    LookForStop();
    const bool group = rule_.counting == Counting::kGroup;
    if (group) {
      const std::vector<NodeId> inputs = graph_.Inputs(anchor);
      if (inputs.empty()) return;
      const auto form =
          options_.linears ? LinearOf(graph_, anchor) : std::nullopt;
      const NodeId input =
          form ? graph_.operand(form->input).value() : inputs[0];
      // One per shared value is enough.
      if (groups_.contains(input) || (near && near_groups_.contains(input)))
        return;
    }
    std::optional<RuleMatch> best;
    if (!near) best = BestAt(anchor, 0);
    for (size_t causes = 1; near && !best && causes <= Finder::kMostDeviations;
         ++causes)
      best = BestAt(anchor, causes);
    if (!best) return;
    const Pattern& pattern = rule_.alternatives[best->alternative].pattern;
    if (group) best->shared = SharedOf(pattern, best->match);
    if (near) {
      AddNearMiss(std::move(*best));
    } else {
      AddMatch(std::move(*best));
    }
  }

  // The first match, or the cheapest one with up to `budget` deviations.
  std::optional<RuleMatch> BestAt(NodeId anchor, size_t budget) {
    const bool near = budget > 0;
    std::optional<RuleMatch> best;
    for (size_t i = 0; i < finders_.size(); ++i) {
      bool possible = false;
      const Pattern& pattern = rule_.alternatives[i].pattern;
      const auto accept = [&](Match& match) {
        return CheckGuards(pattern, match, budget, possible);
      };
      std::optional<Match> match =
          near ? finders_[i].FindNear(anchor, accept, budget)
               : finders_[i].Find(anchor, accept);
      if (!match || (best && !IsCheaper(*match, best->match))) continue;
      best = RuleMatch{i, std::move(*match), possible, NodeId()};
      if (!near) break;
    }
    return best;
  }

  void AddMatch(RuleMatch&& match) {
    std::vector<NodeId> nodes = match.match.Nodes();
    if (rule_.counting == Counting::kGroup) {
      groups_.insert(match.shared);
    } else {
      // The same place, or a part of a larger match.
      const auto larger = matched_.find(nodes.front());
      if (larger != matched_.end() &&
          std::includes(larger->second.begin(), larger->second.end(),
                        nodes.begin(), nodes.end()))
        return;
    }
    for (const NodeId id : nodes) matched_[id] = nodes;
    out_.matches.push_back(std::move(match));
  }

  void AddNearMiss(RuleMatch&& miss) {
    std::vector<NodeId> nodes = miss.match.Nodes();
    for (const NodeId id : nodes) {
      if (matched_.contains(id)) return;
    }
    if (rule_.counting == Counting::kGroup) {
      near_groups_.insert(miss.shared);
    } else if (!near_sets_.insert(std::move(nodes)).second) {
      return;
    }
    out_.near_misses.push_back(std::move(miss));
  }

  // False when the match is none. Failing guards are deviations of a match that
  // may have as many.
  bool CheckGuards(const Pattern& pattern, Match& match, size_t budget,
                   bool& possible) const {
    GuardSummary guards =
        graph::CheckGuards(rule_, graph_, pattern, match, options_.option);
    possible = !guards.unknown.empty();
    if (std::optional<Deviation> crossing = CrossesLayer(match))
      guards.failed.push_back(std::move(*crossing));
    if (match.deviations.size() + guards.failed.size() > budget) return false;
    for (Deviation& one : guards.failed)
      match.deviations.push_back(std::move(one));
    return budget == 0 || !match.deviations.empty();
  }

  std::optional<Deviation> CrossesLayer(const Match& match) const {
    if (rule_.boundary || options_.layers.empty()) return std::nullopt;
    NodeId first;
    for (const NodeId id : match.nodes) {
      if (!id.valid() || options_.layers[id.value] < 0) continue;
      if (!first.valid()) first = id;
      const int32_t a = options_.layers[first.value];
      const int32_t b = options_.layers[id.value];
      if (a == b) continue;
      return Deviation{Miss::kCrossesLayer, id, first,
                       fmt::format("in layer {}, and %{} in layer {}", b,
                                   EscapeTerminal(graph_[first].name), a)};
    }
    return std::nullopt;
  }

  const OpIndex& index_;
  const Graph& graph_;
  const Rule& rule_;
  const FindOptions& options_;
  std::vector<Finder> finders_;
  RuleMatches out_;
  // Nodes of matches, each with all nodes of its match.
  absl::flat_hash_map<NodeId, std::vector<NodeId>> matched_;
  absl::flat_hash_set<NodeId> groups_;  // shared values of matches
  absl::flat_hash_set<NodeId> near_groups_;
  std::set<std::vector<NodeId>> near_sets_;
};

}  // namespace

std::string_view Name(DefaultState state) {
  switch (state) {
    case DefaultState::kOn:
      return "on";
    case DefaultState::kOff:
      return "off";
    case DefaultState::kVaries:
      return "varies";
  }
  return {};
}

std::vector<std::string> Rule::HiddenGuards() const {
  std::vector<std::string> out;
  for (const Guard& guard : guards) {
    if (guard.visible != Guard::Visible::kDump)
      out.push_back(fmt::format("{} ({})", guard.id, Name(guard.visible)));
  }
  return out;
}

GuardSummary CheckGuards(const Rule& rule, const Graph& graph,
                         const Pattern& pattern, const Match& match,
                         const OptionOf& option) {
  GuardSummary out;
  for (const Guard& guard : rule.guards) {
    GuardResult result = Check(guard, graph, pattern, match, option);
    if (result.verdict == GuardResult::Verdict::kUnknown)
      out.unknown.push_back(&guard);
    if (result.verdict == GuardResult::Verdict::kFails)
      out.failed.push_back(std::move(result.deviation));
  }
  return out;
}

RuleMatches FindRule(const OpIndex& index, const Rule& rule,
                     const FindOptions& options) {
  return RuleFinder(index, rule, options).Run();
}

}  // namespace lamina::graph
