// SPDX-License-Identifier: Apache-2.0
//
// How values, operands and targets are written in a new line.

#include "graph/pattern/rewrite.h"

#include <algorithm>
#include <map>
#include <utility>

#include "graph/pattern/linear_form.h"
#include "graph/types.h"

namespace lamina::graph {

std::string AnnotationOf(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.result.empty()) return std::string(kUnknownUse);
  return SplitResult(node.result).tuple ? "? : tuple"
                                        : std::string(node.result);
}

std::string UseOf(const Graph& graph, NodeId id) {
  return "%" + std::string(graph[id].name) + " : " + AnnotationOf(graph, id);
}

std::string OperandText(const Graph& graph, OperandId id) {
  const Operand& operand = graph.operand(id);
  if (operand.IsValue()) {
    if (operand.nested) return std::string(graph[operand.value()].name);
    return UseOf(graph, operand.value());
  }
  const std::string_view text = operand.text();
  std::string out;
  size_t done = 0;
  for (uint32_t i = 1; i <= operand.extent(); ++i) {
    const Operand& inner = graph.operand(OperandId(id.value + i));
    if (!inner.replaced) continue;
    const auto at = static_cast<size_t>(inner.text().data() - text.data());
    out += text.substr(done, at - done);
    out += graph[inner.value()].name;
    done = at + inner.text().size();
  }
  return out + std::string(text.substr(done));
}

std::string PrintedTarget(std::string_view target) {
  if (target.starts_with("builtin."))
    return "<built-in function " + std::string(target.substr(8)) + ">";
  if (target.starts_with("fn."))
    return "<function " + std::string(target.substr(3)) + " at 0x0>";
  return std::string(target);
}

std::string BaseName(std::string_view target) {
  const size_t dot = target.find('.');
  std::string name(target.substr(dot + 1));
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

namespace {

using Kind = Term::Kind;

constexpr std::string_view kUnknownResult = "? : N/A";

class Replacer {
 public:
  Replacer(Graph& graph, const Alternative& alternative, const Match& match,
           RewriteState& state)
      : graph_(graph),
        pattern_(alternative.pattern),
        after_(alternative.after),
        match_(match),
        state_(state) {
    for (size_t i = 0; i < pattern_.slots.size(); ++i) {
      const Slot& slot = pattern_.slots[i];
      if (match.slots[i].node.valid()) names_[slot.name] = match.slots[i].node;
      if (slot.output) outputs_.push_back(slot.name);
    }
  }

  Replaced Run() {
    std::vector<NodeId> inputs;
    std::vector<NodeId> users;
    for (size_t i = 0; i < pattern_.slots.size(); ++i) {
      const NodeId id = match_.slots[i].node;
      if (!id.valid()) continue;
      if (pattern_.slots[i].kind != Slot::Kind::kResult) inputs.push_back(id);
      if (!pattern_.slots[i].output) continue;
      for (const NodeId user : graph_.Users(id)) {
        if (!match_.Holds(user)) users.push_back(user);
      }
    }
    before_ = PlaceFor(graph_, inputs, users, match_.anchor());
    if (!before_.valid())
      return {false, "an operand is defined behind a user of an output"};
    NumberWeights();
    for (const Statement& line : after_) {
      if (AddLine(line)) continue;
      TakeBack();
      return {false, "a new line is not one of a dump"};
    }
    for (const auto& [output, to] : replace_) graph_.ReplaceUses(output, to);
    EraseUnused(graph_, match_.Nodes());
    ++state_.replaced;
    return {true, {}};
  }

 private:
  void NumberWeights() {
    std::vector<NodeId> weights;
    for (size_t i = 0; i < pattern_.slots.size(); ++i) {
      if (pattern_.slots[i].kind == Slot::Kind::kWeight)
        weights.push_back(match_.slots[i].node);
    }
    number_ =
        state_.weights
            .try_emplace(weights, static_cast<uint32_t>(state_.weights.size()))
            .first->second;
  }

  // Text with {k}, {u} and {option:value} filled in.
  std::string Filled(std::string_view text) const {
    std::string out;
    while (true) {
      const size_t open = text.find('{');
      const size_t close = text.find('}', open);
      if (open == std::string_view::npos || close == std::string_view::npos)
        return out + std::string(text);
      out += text.substr(0, open);
      const std::string_view key = text.substr(open + 1, close - open - 1);
      text.remove_prefix(close + 1);
      if (key == "k") {
        out += std::to_string(state_.replaced);
      } else if (key == "u") {
        out += std::to_string(number_);
      } else {
        const size_t colon = key.find(':');
        const std::string name(key.substr(0, colon));
        const std::string value = state_.option ? state_.option(name) : "";
        out += !value.empty() ? value
               : colon == std::string_view::npos
                   ? ""
                   : std::string(key.substr(colon + 1));
      }
    }
  }

  NodeId Node(const Term& term) const {
    const auto found = names_.find(term.text);
    return found == names_.end() ? NodeId() : found->second;
  }
  ResultText Result(const Term& term) const {
    const NodeId id = Node(term);
    return id.valid() ? SplitResult(graph_[id].result) : ResultText();
  }

  // What a value is, by an annotation of the rule; empty when unknown.
  std::string Annotation(const Term& term) const {
    switch (term.kind) {
      case Kind::kValue:
      case Kind::kWeight: {
        const NodeId id = Node(term);
        return id.valid() ? std::string(graph_[id].result) : std::string();
      }
      case Kind::kText:
        return term.text;
      case Kind::kTuple: {
        std::string shapes;
        std::string dtypes;
        for (const Term& item : term.items) {
          const std::string inner = Annotation(item);
          const ResultText parts = SplitResult(inner);
          shapes += shapes.empty() ? "(" : ", ";
          dtypes += dtypes.empty() ? "(" : ", ";
          shapes += inner.empty() ? "?" : parts.shape;
          dtypes += inner.empty() ? "None" : parts.dtype;
        }
        return shapes + ") : " + dtypes + ")";
      }
      case Kind::kCall:
        return Computed(term);
      default:
        return {};
    }
  }

  std::string Computed(const Term& call) const {
    if (call.items.empty()) return {};
    const std::string first = Annotation(call.items[0]);
    if (first.empty()) return {};
    const ResultText parts = SplitResult(first);
    auto dims = DimsOf(parts.shape);
    if (!dims) return "? : " + std::string(parts.dtype);
    if (call.text == "transpose") {
      const auto a = DimIndex(call.items[1].text, dims->size());
      const auto b = DimIndex(call.items[2].text, dims->size());
      if (!a || !b) return {};
      std::swap((*dims)[*a], (*dims)[*b]);
    } else if (call.text == "concat") {
      const auto at = DimIndex(call.items.back().text, dims->size());
      if (!at) return {};
      for (size_t i = 1; i + 1 < call.items.size(); ++i) {
        const std::string next = Annotation(call.items[i]);
        const auto other = DimsOf(SplitResult(next).shape);
        if (!other || other->size() != dims->size())
          return "? : " + std::string(parts.dtype);
        (*dims)[*at] = SumOfDims((*dims)[*at], (*other)[*at]);
      }
    } else if (call.text == "cast") {
      return std::string(parts.shape) + " : " + call.items[1].text;
    } else if (call.text == "flat") {
      dims = std::vector<std::string>{ProductOfDims(*dims)};
    }
    return JoinedDims(*dims) + " : " + std::string(parts.dtype);
  }

  // The result of a new line that neither is an output nor has an annotation.
  std::string Inferred(const Statement& line) const {
    const std::string& target = line.targets[0];
    if (line.operands.empty()) return {};
    const Term& first = line.operands[0];
    const ResultText input = Result(first);
    if (MatchesTarget(target, "builtin.getitem") && input.tuple &&
        line.operands.size() == 2) {
      const auto shapes = SplitTuple(input.shape);
      const auto dtypes = SplitTuple(input.dtype);
      const auto at = DimIndex(line.operands[1].text, shapes.size());
      if (!at || dtypes.size() != shapes.size()) return {};
      return std::string(shapes[*at]) + " : " + std::string(dtypes[*at]);
    }
    if (MatchesTarget(target, "aten.transpose") && line.operands.size() == 3) {
      Term call = first;
      call.kind = Kind::kCall;
      call.text = "transpose";
      call.items = line.operands;
      return Computed(call);
    }
    if (MatchesTarget(target, "aten.contiguous")) return Annotation(first);
    return {};
  }

  std::string Operand(const Term& term) {
    switch (term.kind) {
      case Kind::kValue:
      case Kind::kWeight:
        return UseOf(graph_, Node(term));
      case Kind::kAny:
      case Kind::kLiteral: {
        const Binding& binding = match_.slots[pattern_.Find(term.text)];
        return OperandText(graph_, binding.operand);
      }
      case Kind::kText:
        return Filled(term.text);
      case Kind::kList:
      case Kind::kTuple: {
        std::string out = term.kind == Kind::kList ? "[" : "(";
        for (size_t i = 0; i < term.items.size(); ++i) {
          if (i > 0) out += ", ";
          const Term& item = term.items[i];
          out += item.kind == Kind::kValue || item.kind == Kind::kWeight
                     ? std::string(graph_[Node(item)].name)
                     : Operand(item);
        }
        return out + (term.kind == Kind::kList ? "]" : ")");
      }
      case Kind::kCall:
        return CallOperand(term);
      case Kind::kRest:
        break;
    }
    return {};
  }

  std::string CallOperand(const Term& term) {
    if (term.text == "weight") {
      const std::string annotation = Annotation(term.items[1]);
      return "%" + Filled(term.items[0].text) + " : " +
             (annotation.empty() ? std::string(kUnknownUse) : annotation);
    }
    const ResultText parts = Result(term.items[0]);
    if (term.text == "dtype") return std::string(parts.dtype);
    const auto dims = DimsOf(parts.shape);
    const auto at =
        dims ? DimIndex(term.items[1].text, dims->size()) : std::nullopt;
    return at ? (*dims)[*at] : "None";
  }

  // The operands of the anchor that its pattern does not name.
  void AppendRest(std::vector<std::string>& out) const {
    const std::vector<OperandId> operands = graph_.TopOperands(match_.anchor());
    for (size_t i = pattern_.anchor().operands.size(); i < operands.size(); ++i)
      out.push_back(OperandText(graph_, operands[i]));
  }

  // In the reverse order: later lines may use earlier ones.
  void TakeBack() {
    for (; !added_.empty(); added_.pop_back())
      EraseUnused(graph_, {added_.back()});
  }

  // False when the line, with everything filled in, does not parse.
  bool AddLine(const Statement& line) {
    const auto old = names_.find(line.result);
    const bool output =
        old != names_.end() && std::find(outputs_.begin(), outputs_.end(),
                                         line.result) != outputs_.end();
    if (line.targets.empty()) {
      replace_.emplace_back(old->second, Node(line.operands[0]));
      return true;
    }
    const std::string target = Filled(line.targets[0]);
    std::vector<std::string> operands;
    for (const Term& term : line.operands) {
      if (term.kind == Kind::kRest) {
        AppendRest(operands);
      } else {
        operands.push_back(Operand(term));
      }
    }
    std::string call = PrintedTarget(target) + "(";
    for (size_t i = 0; i < operands.size(); ++i)
      call += (i > 0 ? ", " : "") + operands[i];
    call += ")";
    if (line.shared) {
      const auto made = state_.shared.find(call);
      if (made != state_.shared.end() && !graph_[made->second].erased) {
        if (output && old->second != made->second)
          replace_.emplace_back(old->second, made->second);
        names_[line.result] = made->second;
        return true;
      }
    }
    std::string result;
    if (!line.annotation.empty()) {
      result = Annotation(line.annotation[0]);
    } else if (output) {
      result = graph_[old->second].result;
    } else {
      result = Inferred(line);
    }
    if (result.empty()) result = kUnknownResult;
    const std::string name = graph_.FreshName(BaseName(target));
    const auto added =
        graph_.Insert(before_, "%" + name + " = " + call + " : " + result);
    if (!added) return false;
    added_.push_back(*added);
    if (line.shared) state_.shared[call] = *added;
    if (output) replace_.emplace_back(old->second, *added);
    names_[line.result] = *added;
    return true;
  }

  Graph& graph_;
  const Pattern& pattern_;
  const std::vector<Statement>& after_;
  const Match& match_;
  RewriteState& state_;
  std::map<std::string, NodeId> names_;
  std::vector<std::string> outputs_;
  std::vector<std::pair<NodeId, NodeId>> replace_;  // old, new
  std::vector<NodeId> added_;
  NodeId before_;
  uint32_t number_ = 0;
};

}  // namespace

Replaced Replace(Graph& graph, const Alternative& alternative,
                 const Match& match, RewriteState& state) {
  return Replacer(graph, alternative, match, state).Run();
}

NodeId PlaceFor(const Graph& graph, const std::vector<NodeId>& inputs,
                const std::vector<NodeId>& users, NodeId wished) {
  NodeId last;  // must come behind this one
  for (const NodeId id : inputs) {
    if (graph[id].kind == NodeKind::kWeight) continue;
    if (!last.valid() || graph.ComesBefore(last, id)) last = id;
  }
  NodeId first;
  for (const NodeId id : users) {
    if (!first.valid() || graph.ComesBefore(id, first)) first = id;
  }
  const auto fits = [&](NodeId place) {
    return (!last.valid() || graph.ComesBefore(last, place)) &&
           (!first.valid() || !graph.ComesBefore(first, place));
  };
  if (fits(wished)) return wished;
  return first.valid() && fits(first) ? first : NodeId();
}

size_t EraseUnused(Graph& graph, std::vector<NodeId> candidates) {
  size_t erased = 0;
  while (!candidates.empty()) {
    const NodeId id = candidates.back();
    candidates.pop_back();
    const Node& node = graph[id];
    if (node.kind != NodeKind::kOp || node.erased || graph.UseCount(id) > 0)
      continue;
    const std::vector<NodeId> inputs = graph.Inputs(id);
    graph.Erase(id);
    ++erased;
    candidates.insert(candidates.end(), inputs.begin(), inputs.end());
  }
  return erased;
}

}  // namespace lamina::graph
