// SPDX-License-Identifier: Apache-2.0

#include "graph/generate/example.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "graph/fusion/mining.h"
#include "graph/generate/python_text.h"
#include "graph/generate/write_pass.h"
#include "graph/passes/rule_file.h"
#include "graph/pattern/rewrite.h"
#include "graph/types.h"

namespace lamina::generate {

namespace {

using graph::Graph;
using graph::Match;
using graph::NodeId;
using graph::NodeKind;
using graph::Operand;
using graph::OperandId;
using graph::OperandKind;
using graph::Pattern;

class Maker {
 public:
  Maker(const Graph& graph, const Pattern& pattern, const Match& match)
      : graph_(graph), pattern_(pattern), match_(match) {
    for (size_t i = 0; i < pattern.slots.size(); ++i) {
      const NodeId id = match.slots[i].node;
      if (id.valid()) wished_.try_emplace(id, pattern.slots[i].name);
    }
  }

  std::optional<Example> Run() {
    std::vector<NodeId> nodes = match_.Nodes();
    std::sort(nodes.begin(), nodes.end(),
              [&](NodeId a, NodeId b) { return graph_.ComesBefore(a, b); });
    const std::set<NodeId> inside(nodes.begin(), nodes.end());
    std::vector<ExampleNode> ops;
    for (const NodeId id : nodes) {
      ExampleNode node;
      node.op = graph_.op(id);
      for (const OperandId operand : graph_.TopOperands(id)) {
        auto arg = Arg(operand, inside);
        if (!arg) return std::nullopt;
        node.args.push_back(std::move(*arg));
      }
      node.name = NameOf(id);
      node.result = Concrete(graph_[id].result);
      ops.push_back(std::move(node));
    }
    for (ExampleNode& op : ops) out_.nodes.push_back(std::move(op));
    for (size_t i = 0; i < pattern_.slots.size(); ++i) {
      if (pattern_.slots[i].output && match_.slots[i].node.valid())
        out_.outputs.push_back(NameOf(match_.slots[i].node));
    }
    return std::move(out_);
  }

 private:
  std::string NameOf(NodeId id) {
    const auto [found, fresh] = names_.try_emplace(id);
    if (!fresh) return found->second;
    const auto wished = wished_.find(id);
    const std::string base =
        Identifier(wished == wished_.end() ? fmt::format("other{}", others_++)
                                           : wished->second);
    std::string name = base;
    for (size_t i = 1; !taken_.insert(name).second; ++i)
      name = fmt::format("{}_{}", base, i);
    found->second = name;
    return name;
  }

  std::optional<ExampleArg> Arg(OperandId id, const std::set<NodeId>& inside) {
    const Operand& operand = graph_.operand(id);
    ExampleArg out;
    if (operand.IsValue()) {
      const NodeId value = operand.value();
      out.kind = ExampleArg::Kind::kNode;
      const bool fresh = !names_.contains(value);
      out.text = NameOf(value);
      if (fresh && !inside.contains(value)) {
        ExampleNode node;
        node.kind = graph_[value].kind == NodeKind::kWeight
                        ? ExampleNode::Kind::kWeight
                        : ExampleNode::Kind::kInput;
        node.name = out.text;
        node.result = Concrete(graph_[value].result);
        out_.nodes.push_back(std::move(node));
      }
      return out;
    }
    if (operand.kind == OperandKind::kList ||
        operand.kind == OperandKind::kTuple) {
      out.kind = operand.kind == OperandKind::kList ? ExampleArg::Kind::kList
                                                    : ExampleArg::Kind::kTuple;
      const uint32_t end = id.value + operand.extent();
      for (uint32_t i = id.value + 1; i <= end;
           i += 1 + graph_.operand(OperandId(i)).extent()) {
        auto item = Arg(OperandId(i), inside);
        if (!item) return std::nullopt;
        out.items.push_back(std::move(*item));
      }
      return out;
    }
    out.text = operand.text();
    if (!Literal(out.text)) return std::nullopt;
    return out;
  }

  // Every symbol gets a prime of its own.
  std::string Concrete(std::string_view result) {
    const graph::ResultText parts = graph::SplitResult(result);
    if (parts.tuple) {
      const auto shapes = graph::SplitTuple(parts.shape);
      const auto dtypes = graph::SplitTuple(parts.dtype);
      if (shapes.size() != dtypes.size()) return {};
      std::string all_shapes;
      std::string all_dtypes;
      for (size_t i = 0; i < shapes.size(); ++i) {
        const std::string one =
            Concrete(fmt::format("{} : {}", shapes[i], dtypes[i]));
        if (one.empty()) return {};
        const graph::ResultText piece = graph::SplitResult(one);
        all_shapes += (i > 0 ? ", " : "") + std::string(piece.shape);
        all_dtypes += (i > 0 ? ", " : "") + std::string(piece.dtype);
      }
      return fmt::format("({}) : ({})", all_shapes, all_dtypes);
    }
    const auto dims = graph::SplitShape(parts.shape);
    if (!dims || !graph::DTypeBytes(parts.dtype)) return {};
    for (const std::string_view symbol : graph::Symbols(parts.shape)) {
      static constexpr int64_t kPrimes[] = {2,  3,  5,  7,  11, 13,
                                            17, 19, 23, 29, 31, 37};
      if (bindings_.contains(std::string(symbol))) continue;
      if (bindings_.size() == std::size(kPrimes)) return {};
      const int64_t prime = kPrimes[bindings_.size()];
      bindings_[std::string(symbol)] = prime;
    }
    std::string shape;
    for (const std::string_view dim : *dims) {
      const auto value = graph::EvaluateDim(dim, bindings_);
      if (!value) return {};
      shape += (shape.empty() ? "" : "x") + std::to_string(*value);
    }
    if (shape.empty()) shape = "scalar";
    return fmt::format("{} : {}", shape, parts.dtype);
  }

  const Graph& graph_;
  const Pattern& pattern_;
  const Match& match_;
  Example out_;
  std::map<NodeId, std::string> wished_;
  std::map<NodeId, std::string> names_;
  std::set<std::string> taken_;
  graph::Bindings bindings_;
  size_t others_ = 0;
};

std::string UseOf(const Example& example, const std::string& name) {
  const ExampleNode* const node = example.Find(name);
  const bool known = node != nullptr && !node->result.empty();
  const bool tuple = known && node->result.front() == '(';
  return fmt::format("%{} : {}", name,
                     tuple   ? "? : tuple"
                     : known ? node->result
                             : "? : unknown");
}

std::string ArgText(const Example& example, const ExampleArg& arg, bool top) {
  switch (arg.kind) {
    case ExampleArg::Kind::kNode:
      return top ? UseOf(example, arg.text) : arg.text;
    case ExampleArg::Kind::kText:
      return arg.text;
    case ExampleArg::Kind::kList:
    case ExampleArg::Kind::kTuple:
      break;
  }
  const bool list = arg.kind == ExampleArg::Kind::kList;
  std::string out(1, list ? '[' : '(');
  for (const ExampleArg& item : arg.items)
    out += (out.size() > 1 ? ", " : "") + ArgText(example, item, false);
  if (!list && arg.items.size() == 1) out += ',';
  return out + (list ? ']' : ')');
}

void Rename(ExampleArg& arg, std::string_view tag, std::string_view chain,
            std::string_view to) {
  if (arg.kind == ExampleArg::Kind::kNode)
    arg.text =
        arg.text == chain ? std::string(to) : arg.text + std::string(tag);
  for (ExampleArg& item : arg.items) Rename(item, tag, chain, to);
}

}  // namespace

const ExampleNode* Example::Find(std::string_view name) const {
  for (const ExampleNode& node : nodes) {
    if (node.name == name) return &node;
  }
  return nullptr;
}
ExampleNode* Example::Find(std::string_view name) {
  return const_cast<ExampleNode*>(
      static_cast<const Example*>(this)->Find(name));
}

Example Example::Copy(std::string_view tag, std::string_view chain,
                      std::string_view to) const {
  Example out = *this;
  std::erase_if(out.nodes, [&](const ExampleNode& node) {
    return !chain.empty() && node.name == chain;
  });
  for (ExampleNode& node : out.nodes) {
    node.name += tag;
    for (ExampleArg& arg : node.args) Rename(arg, tag, chain, to);
  }
  for (std::string& output : out.outputs) output += tag;
  return out;
}

std::optional<Example> ExampleOf(const Graph& graph, const Pattern& pattern,
                                 const Match& match) {
  return Maker(graph, pattern, match).Run();
}

std::string DumpLines(const Example& example,
                      const std::vector<std::string>& spies) {
  std::string inputs;
  std::string ops;
  for (const ExampleNode& node : example.nodes) {
    if (node.kind == ExampleNode::Kind::kInput)
      inputs += UseOf(example, node.name) + "\n";
    if (node.kind != ExampleNode::Kind::kOp) continue;
    ops += fmt::format("%{} = {}(", node.name, graph::PrintedTarget(node.op));
    for (size_t i = 0; i < node.args.size(); ++i)
      ops += (i > 0 ? ", " : "") + ArgText(example, node.args[i], true);
    ops += ") : " + (node.result.empty() ? "? : N/A" : node.result) + "\n";
  }
  std::string last;
  for (const std::string& output : example.outputs)
    last += (last.empty() ? "output %" : ", %") + output;
  for (const std::string& spy : spies) last += ", %" + spy;
  return inputs + ops + last + "\n";
}

size_t CountMatches(const graph::Rule& rule, std::string_view lines,
                    const graph::OptionOf& option) {
  const auto dump = graph::ParseExample(rule.name, lines);
  if (!dump || dump->graphs.empty()) return 0;
  const Graph& graph = dump->graphs[0];
  graph::FindOptions find;
  find.option = option;
  const graph::RuleMatches found =
      graph::FindRule(graph::OpIndex(graph), rule, find);
  return static_cast<size_t>(std::count_if(
      found.matches.begin(), found.matches.end(),
      [&](const graph::RuleMatch& match) {
        const graph::GuardSummary guards = graph::CheckGuards(
            rule, graph, rule.alternatives[match.alternative].pattern,
            match.match, option);
        return std::none_of(guards.unknown.begin(), guards.unknown.end(),
                            [](const graph::Guard* guard) {
                              return guard->visible ==
                                     graph::Guard::Visible::kDump;
                            });
      }));
}

// Rules that no file holds: from places that a search found, and with another
// op in place of what a rule names.

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
