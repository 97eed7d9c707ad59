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
#include "graph/pattern/rewrite.h"

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

// Whether the lines that replace a pattern can be written for it.

namespace {

using Kind = Term::Kind;

// What stands for what in a replacement: operands are written, annotations are
// worked out, and each has its own functions.
class TemplateCheck {
 public:
  explicit TemplateCheck(const Pattern& pattern) : pattern_(pattern) {}

  Parsed<void> Run(const std::vector<Statement>& after) {
    if (after.size() > kMaxPatternLines)
      return Wrong(after[kMaxPatternLines].place, "too many lines");
    for (const Statement& line : after) {
      if (auto done = CheckLine(line); !done) return done;
      made_.push_back(line.result);
    }
    const std::string& anchor = pattern_.slots[pattern_.anchor().slot].name;
    if (Made(anchor)) return {};
    return Wrong(after.empty() ? TextPlace{1, 1} : after.back().place,
                 "nothing replaces the output '" + anchor + "'");
  }

 private:
  // What an argument of a function may be.
  enum class Argument : uint8_t { kValue, kAnnotation, kText };
  struct Form {
    std::string_view name;
    size_t least;
    size_t most;
    bool operand;    // else an annotation
    Argument first;  // and what the others are:
    Argument rest;
  };
  static constexpr Form kForms[] = {
      {"dim", 2, 2, true, Argument::kValue, Argument::kText},
      {"dtype", 1, 1, true, Argument::kValue, Argument::kText},
      {"weight", 2, 2, true, Argument::kText, Argument::kAnnotation},
      {"transpose", 3, 3, false, Argument::kAnnotation, Argument::kText},
      {"flat", 1, 1, false, Argument::kAnnotation, Argument::kText},
      // The last one is a dimension.
      {"concat", 3, 64, false, Argument::kAnnotation, Argument::kAnnotation},
      {"unknown", 0, 0, false, Argument::kText, Argument::kText},
      {"cast", 2, 2, false, Argument::kAnnotation, Argument::kText},
  };

  static tl::unexpected<SyntaxError> Wrong(TextPlace place, std::string what) {
    return tl::make_unexpected(SyntaxError{place, std::move(what)});
  }
  bool Made(const std::string& name) const {
    return std::find(made_.begin(), made_.end(), name) != made_.end();
  }

  Parsed<void> CheckLine(const Statement& line) const {
    const bool alias = line.targets.empty();
    for (const Term& term : line.operands) {
      if (term.kind == Kind::kRest && !alias) continue;
      if (auto done = alias ? CheckValue(term) : CheckOperand(term); !done)
        return done;
    }
    for (const Term& term : line.annotation) {
      if (auto done = CheckAnnotation(term); !done) return done;
    }
    if (line.targets.size() > 1)
      return Wrong(line.target_place, "a replacement has one target");
    if (line.commutes) return Wrong(line.target_place, "'~' is for patterns");
    if (!alias) return {};
    const uint32_t slot = pattern_.Find(line.result);
    if (slot == kNoSlot || !pattern_.slots[slot].output) {
      return Wrong(line.place,
                   "'" + line.result + "' is not an output of the pattern");
    }
    if (line.operands[0].text == line.result)
      return Wrong(line.place, "'" + line.result + "' replaces itself");
    return {};
  }

  Parsed<void> CheckValue(const Term& term) const {
    if (term.kind != Kind::kValue && term.kind != Kind::kWeight)
      return Wrong(term.place, "expected a value like %x");
    if (Made(term.text)) return {};
    const uint32_t slot = pattern_.Find(term.text);
    if (slot == kNoSlot) return Unbound(term);
    const Slot::Kind kind = pattern_.slots[slot].kind;
    if (kind != Slot::Kind::kLiteral && kind != Slot::Kind::kAny) return {};
    return Wrong(term.place, "'" + term.text +
                                 "' is no value in the pattern: write it "
                                 "with the same sigil");
  }

  static Parsed<void> Unbound(const Term& term) {
    return Wrong(term.place, "'" + term.text +
                                 "' is bound neither by the pattern nor by "
                                 "a line above");
  }

  Parsed<void> CheckOperand(const Term& term) const {
    switch (term.kind) {
      case Kind::kValue:
      case Kind::kWeight:
        return CheckValue(term);
      case Kind::kAny:
      case Kind::kLiteral:
        return CheckCopied(term);
      case Kind::kList:
      case Kind::kTuple:
        for (const Term& item : term.items) {
          if (auto done = CheckOperand(item); !done) return done;
        }
        return {};
      case Kind::kCall:
        return CheckCall(term, true);
      case Kind::kRest:
        return Wrong(term.place, "'...' cannot stand inside a list");
      case Kind::kText:
        break;
    }
    return {};
  }

  // ?x and $x stand for an operand of the match, as it was written.
  Parsed<void> CheckCopied(const Term& term) const {
    if (term.text.empty())
      return Wrong(term.place, "give the operand a name: ?name");
    const uint32_t slot = pattern_.Find(term.text);
    if (slot == kNoSlot) return Unbound(term);
    const Slot::Kind kind = pattern_.slots[slot].kind;
    if (kind == Slot::Kind::kLiteral || kind == Slot::Kind::kAny) return {};
    return Wrong(term.place,
                 "'" + term.text + "' is a value: write %" + term.text);
  }

  Parsed<void> CheckAnnotation(const Term& term) const {
    switch (term.kind) {
      case Kind::kValue:
      case Kind::kWeight:
        return CheckValue(term);
      case Kind::kText:
        return {};
      case Kind::kTuple:
        for (const Term& item : term.items) {
          if (auto done = CheckAnnotation(item); !done) return done;
        }
        return {};
      case Kind::kCall:
        return CheckCall(term, false);
      default:
        return Wrong(term.place,
                     "expected a value, a shape and dtype, or a "
                     "function of them");
    }
  }

  Parsed<void> CheckCall(const Term& term, bool operand) const {
    const auto* const form =
        std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) {
          return f.name == term.text && f.operand == operand;
        });
    if (form == std::end(kForms)) {
      return Wrong(term.place, std::string("unknown function of ") +
                                   (operand ? "an operand" : "a result") +
                                   " '" + term.text + "'");
    }
    if (term.items.size() < form->least || term.items.size() > form->most)
      return Wrong(term.place, "wrong number of arguments");
    for (size_t i = 0; i < term.items.size(); ++i) {
      Argument wanted = i == 0 ? form->first : form->rest;
      if (form->name == "concat" && i + 1 == term.items.size())
        wanted = Argument::kText;
      if (auto done = CheckArgument(term.items[i], wanted); !done) return done;
    }
    return {};
  }

  Parsed<void> CheckArgument(const Term& term, Argument wanted) const {
    if (wanted == Argument::kValue) return CheckValue(term);
    if (wanted == Argument::kAnnotation) return CheckAnnotation(term);
    if (term.kind == Kind::kText) return {};
    return Wrong(term.place, "expected text");
  }

  const Pattern& pattern_;
  std::vector<std::string> made_;
};

}  // namespace

Parsed<void> ValidateTemplate(const std::vector<Statement>& after,
                              const Pattern& pattern) {
  return TemplateCheck(pattern).Run(after);
}

}  // namespace lamina::graph
