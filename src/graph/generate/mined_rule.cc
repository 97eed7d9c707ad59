// SPDX-License-Identifier: Apache-2.0
//
// Rules that no file holds: from places that a search found, and with another
// op in place of what a rule names.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "graph/fusion/canonical.h"
#include "graph/generate/write_pass.h"
#include "graph/types.h"

namespace lamina::generate {
namespace {

using graph::Alternative;
using graph::Guard;
using graph::NodeId;
using graph::Pattern;
using graph::PatternTerm;
using graph::Rule;
using graph::Slot;
using graph::Statement;
using graph::Term;

Error Unwritable(const std::string& name, const graph::SyntaxError& error) {
  return UsageError(
      fmt::format("{}: its form is no pattern: {}", name, error.what),
      "write a rule for it (⟨rules⟩ FILE)");
}

Term Named(Term::Kind kind, std::string text) {
  Term term;
  term.kind = kind;
  term.text = std::move(text);
  return term;
}

void Uses(const std::vector<PatternTerm>& terms, const Pattern& pattern,
          std::vector<uint32_t>& out) {
  for (const PatternTerm& term : terms) {
    if (term.slot != graph::kNoSlot &&
        pattern.slots[term.slot].kind != Slot::Kind::kResult &&
        std::find(out.begin(), out.end(), term.slot) == out.end())
      out.push_back(term.slot);
    Uses(term.items, pattern, out);
  }
}

}  // namespace

Status ReplaceBy(Rule& rule, std::string_view op) {
  for (Alternative& alternative : rule.alternatives) {
    const Pattern& pattern = alternative.pattern;
    std::vector<uint32_t> slots;
    for (const graph::PatternLine& line : pattern.lines)
      Uses(line.operands, pattern, slots);
    Statement call;
    call.targets = {std::string(op)};
    for (const uint32_t slot : slots) {
      const Slot& one = pattern.slots[slot];
      const Term::Kind kind =
          one.kind == Slot::Kind::kWeight    ? Term::Kind::kWeight
          : one.kind == Slot::Kind::kLiteral ? Term::Kind::kLiteral
          : one.kind == Slot::Kind::kAny     ? Term::Kind::kAny
                                             : Term::Kind::kValue;
      call.operands.push_back(Named(kind, one.name));
    }
    std::vector<std::string> outputs;
    for (const Slot& slot : pattern.slots) {
      if (slot.output) outputs.push_back(slot.name);
    }
    alternative.after.clear();
    if (outputs.size() == 1) {
      call.result = outputs[0];
      alternative.after.push_back(std::move(call));
      continue;
    }
    std::string result = "fused";
    while (pattern.Find(result) != graph::kNoSlot) result += '_';
    call.result = result;
    Term all = Named(Term::Kind::kTuple, "");
    for (const std::string& output : outputs)
      all.items.push_back(Named(Term::Kind::kValue, output));
    call.annotation.push_back(std::move(all));
    alternative.after.push_back(std::move(call));
    for (size_t i = 0; i < outputs.size(); ++i) {
      Statement item;
      item.result = outputs[i];
      item.targets = {"builtin.getitem"};
      item.operands = {Named(Term::Kind::kValue, result),
                       Named(Term::Kind::kText, std::to_string(i))};
      alternative.after.push_back(std::move(item));
    }
  }
  rule.rewrites.clear();
  rule.native.clear();
  rule.produces = {std::string(op)};
  return {};
}

Result<Rule> RuleOfPlaces(const graph::Graph& graph,
                          const std::vector<std::vector<NodeId>>& places,
                          const std::string& name, const std::string& title) {
  Rule rule;
  rule.name = name;
  rule.title = title;
  rule.stage = "post_load_fusion";
  rule.default_state = graph::DefaultState::kOff;
  rule.boundary = true;
  Alternative alternative;
  alternative.text = fusion::FormText(graph, places[0]);
  const auto statements = graph::ParseStatements(alternative.text);
  if (!statements) return Fail(Unwritable(name, statements.error()));
  // Results that something outside of a place reads, in any place.
  std::vector<std::string> outputs;
  for (size_t i = 0; i < places[0].size(); ++i) {
    const bool used = std::any_of(
        places.begin(), places.end(), [&](const std::vector<NodeId>& place) {
          const std::set<NodeId> inside(place.begin(), place.end());
          const std::vector<NodeId> users = graph.Users(place[i]);
          return std::any_of(users.begin(), users.end(), [&](NodeId user) {
            return !inside.contains(user);
          });
        });
    if (used) outputs.push_back((*statements)[i].result);
  }
  auto pattern = graph::CompilePattern(*statements, outputs);
  if (!pattern) return Fail(Unwritable(name, pattern.error()));
  alternative.pattern = std::move(*pattern);
  rule.alternatives.push_back(std::move(alternative));
  // What all places have in common: a kernel may rely on it.
  const Pattern& form = rule.alternatives[0].pattern;
  const graph::OpIndex index(graph);
  graph::Finder finder(index, form);
  std::vector<graph::Match> matches;
  for (const std::vector<NodeId>& place : places) {
    auto match =
        finder.Find(place.back(), [](const graph::Match&) { return true; });
    if (match) matches.push_back(std::move(*match));
  }
  if (matches.empty()) return rule;
  std::vector<uint32_t> inputs;
  for (uint32_t i = 0; i < form.slots.size(); ++i) {
    if (form.slots[i].kind == Slot::Kind::kValue) inputs.push_back(i);
  }
  const auto in_all = [&](auto holds) {
    return std::all_of(matches.begin(), matches.end(), holds);
  };
  const auto result = [&](const graph::Match& match, uint32_t slot) {
    const NodeId id = match.slots[slot].node;
    return id.valid() ? graph::SplitResult(graph[id].result)
                      : graph::ResultText();
  };
  const auto add = [&](std::string id, std::string text, Term call) {
    Guard guard;
    guard.id = std::move(id);
    guard.text = std::move(text);
    guard.check.push_back(std::move(call));
    rule.guards.push_back(std::move(guard));
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& own = form.slots[inputs[i]].name;
    const std::string dtype(result(matches[0], inputs[i]).dtype);
    const bool same =
        graph::DTypeBytes(dtype) && in_all([&](const graph::Match& match) {
          return result(match, inputs[i]).dtype == dtype;
        });
    if (same) {
      Term call = Named(Term::Kind::kCall, "dtype");
      call.items = {Named(Term::Kind::kValue, own),
                    Named(Term::Kind::kText, dtype)};
      add("dtype_" + own, own + " is " + dtype + ", as in all places",
          std::move(call));
    }
    if (i == 0) continue;
    const std::string& first = form.slots[inputs[0]].name;
    const bool alike = in_all([&](const graph::Match& match) {
      const auto a = result(match, inputs[0]);
      const auto b = result(match, inputs[i]);
      return graph::SplitShape(a.shape) && a.shape == b.shape;
    });
    if (!alike) continue;
    Term call = Named(Term::Kind::kCall, "same_shape");
    call.items = {Named(Term::Kind::kValue, first),
                  Named(Term::Kind::kValue, own)};
    add("shape_" + own,
        own + " has the shape of " + first + ", as in all places",
        std::move(call));
  }
  return rule;
}

}  // namespace lamina::generate
