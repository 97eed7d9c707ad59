// SPDX-License-Identifier: Apache-2.0

#include "graph/pattern/match.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "graph/pattern/linear_form.h"
#include "graph/types.h"

namespace lamina::graph {

OpIndex::OpIndex(const Graph& graph)
    : graph_(&graph),
      positions_(graph.Positions()),
      by_op_(graph.ops()->size()) {
  for (const NodeId id : graph.nodes()) {
    if (graph[id].kind != NodeKind::kOp) continue;
    std::vector<NodeId>& nodes = by_op_[graph[id].op.value];
    if (nodes.empty()) present_.push_back(graph[id].op);
    nodes.push_back(id);
  }
}

std::vector<StringId> OpIndex::Ops(std::span<const std::string> targets) const {
  std::vector<StringId> out;
  for (const StringId op : present_) {
    for (const std::string& target : targets) {
      if (MatchesTarget((*graph_->ops())[op], target)) {
        out.push_back(op);
        break;
      }
    }
  }
  return out;
}

std::span<const NodeId> OpIndex::Nodes(StringId op) const {
  return by_op_[op.value];
}

std::vector<NodeId> OpIndex::Candidates(
    std::span<const std::string> targets) const {
  std::vector<NodeId> out;
  for (const StringId op : Ops(targets))
    out.insert(out.end(), by_op_[op.value].begin(), by_op_[op.value].end());
  std::sort(out.begin(), out.end(),
            [this](NodeId a, NodeId b) { return Position(a) < Position(b); });
  return out;
}

namespace {

// Patterns with fewer lines say too little for one of their ops to be another.
constexpr size_t kMinLinesForOtherOp = 4;
// And with fewer than this for two deviations.
constexpr size_t kMinLinesForTwo = 4;

std::string Quoted(std::string_view text) {
  constexpr size_t kMost = 40;
  if (text.size() > kMost) text = text.substr(0, kMost);
  return "'" + EscapeTerminal(text) + "'";
}

bool SameLiteral(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const auto x = ParseDouble(a);
  const auto y = ParseDouble(b);
  return x && y && *x == *y;
}

// Operands directly inside of a container.
std::vector<OperandId> Items(const Graph& graph, OperandId container) {
  std::vector<OperandId> out;
  const uint32_t end = container.value + graph.operand(container).extent();
  for (uint32_t i = container.value + 1; i <= end;) {
    out.push_back(OperandId(i));
    i += 1 + graph.operand(OperandId(i)).extent();
  }
  return out;
}

// Ops that compute nothing: another form of the same value.
bool IsView(std::string_view op) {
  for (const std::string_view view :
       {"aten.view", "aten.reshape", "aten.transpose", "aten.permute",
        "aten.unsqueeze", "aten.squeeze", "aten.expand", "aten.slice",
        "aten.select", "aten.contiguous", "builtin.getitem"}) {
    if (MatchesTarget(op, view)) return true;
  }
  return false;
}

// Whether a line is written with the linear of AutoDeploy.
bool TakesLinears(const PatternLine& line) {
  return std::any_of(line.targets.begin(), line.targets.end(),
                     [](const std::string& target) {
                       return MatchesTarget(target, kLinearOp);
                     });
}

// The operands that a line reads: those of the node, or of the linear that it
// is. `no_bias` is set where that has none.
std::vector<OperandId> OperandsFor(const Graph& graph, NodeId node,
                                   bool linears, bool& no_bias) {
  const auto form = linears ? LinearOf(graph, node) : std::nullopt;
  no_bias = form && !form->bias.valid();
  if (!form) return graph.TopOperands(node);
  std::vector<OperandId> out = {form->input, form->weight};
  if (!no_bias) out.push_back(form->bias);
  return out;
}

bool IsWeight(const Graph& graph, NodeId id) {
  return graph[id].kind == NodeKind::kWeight;
}

// Deviations in the ops themselves, not in what they are given.
bool ChangesOps(Miss miss) {
  return miss >= Miss::kExtraCast && miss <= Miss::kOtherOp;
}

}  // namespace

std::string_view Name(Miss miss) {
  switch (miss) {
    case Miss::kExtraUser:
      return "extra_user";
    case Miss::kOperandOrder:
      return "operand_order";
    case Miss::kStrategy:
      return "strategy";
    case Miss::kLiteral:
      return "literal";
    case Miss::kDType:
      return "dtype";
    case Miss::kShape:
      return "shape";
    case Miss::kExtraCast:
      return "extra_cast";
    case Miss::kMissingCast:
      return "missing_cast";
    case Miss::kExtraView:
      return "extra_view";
    case Miss::kExtraOp:
      return "extra_op";
    case Miss::kArity:
      return "arity";
    case Miss::kCrossesLayer:
      return "crosses_layer";
    case Miss::kOtherOp:
      return "other_op";
    case Miss::kMetadataLoss:
      return "metadata_loss";
  }
  return {};
}

std::vector<NodeId> Match::Nodes() const {
  std::vector<NodeId> out;
  for (const NodeId id : nodes) {
    if (id.valid()) out.push_back(id);
  }
  if (extra.valid()) out.push_back(extra);
  out.insert(out.end(), inner.begin(), inner.end());
  std::sort(out.begin(), out.end());
  return out;
}

bool Match::Holds(NodeId id) const {
  return id == extra ||
         std::find(nodes.begin(), nodes.end(), id) != nodes.end() ||
         std::find(inner.begin(), inner.end(), id) != inner.end();
}

Finder::Finder(const OpIndex& index, const Pattern& pattern, bool linears)
    : graph_(index.graph()), pattern_(pattern) {
  for (const PatternLine& line : pattern.lines) {
    targets_.push_back(index.Ops(line.targets));
    linear_.push_back(linears && TakesLinears(line));
  }
  if (!targets_.back().empty())
    anchors_ = index.Candidates(pattern.anchor().targets);
  if (linear_.back()) AddLinearAnchors(index);
}

void Finder::AddLinearAnchors(const OpIndex& index) {
  for (const NodeId id : graph_.nodes()) {
    if (LinearOf(graph_, id)) anchors_.push_back(id);
  }
  std::sort(anchors_.begin(), anchors_.end(), [&](NodeId a, NodeId b) {
    return index.Position(a) < index.Position(b);
  });
}

bool Finder::IsTarget(uint32_t line, NodeId node) const {
  if (graph_[node].kind != NodeKind::kOp) return false;
  const std::vector<StringId>& ops = targets_[line];
  return std::find(ops.begin(), ops.end(), graph_[node].op) != ops.end() ||
         (linear_[line] && LinearOf(graph_, node));
}

bool Finder::Taken(NodeId node) const {
  return std::find(match_.nodes.begin(), match_.nodes.end(), node) !=
         match_.nodes.end();
}

bool Finder::Bind(uint32_t slot, const Binding& binding) {
  Binding& old = match_.slots[slot];
  if (old.bound) {
    if (!old.node.valid() || !binding.node.valid())
      return old.node == binding.node && SameLiteral(old.text, binding.text);
    return old.node == binding.node;
  }
  old = binding;
  old.bound = true;
  trail_.push_back(slot);
  return true;
}

bool IsCheaper(const Match& a, const Match& b) {
  if (a.deviations.size() != b.deviations.size())
    return a.deviations.size() < b.deviations.size();
  const auto worst = [](const Match& match) {
    Miss out = Miss::kExtraUser;
    for (const Deviation& one : match.deviations) out = std::max(out, one.miss);
    return out;
  };
  return worst(a) < worst(b);
}

bool Finder::MayDeviate(Miss miss) const {
  if (match_.deviations.size() >= budget_) return false;
  return !ChangesOps(miss) ||
         std::none_of(
             match_.deviations.begin(), match_.deviations.end(),
             [](const Deviation& one) { return ChangesOps(one.miss); });
}

bool Finder::Deviate(Deviation deviation) {
  if (!MayDeviate(deviation.miss)) return false;
  match_.deviations.push_back(std::move(deviation));
  return true;
}

void Finder::Truncate(size_t deviations) {
  while (match_.deviations.size() > deviations) match_.deviations.pop_back();
}

void Finder::Rewind(size_t size, size_t deviations) {
  for (; trail_.size() > size; trail_.pop_back())
    match_.slots[trail_.back()] = Binding();
  Truncate(deviations);
}

bool Finder::MatchTerm(const PatternTerm& term, OperandId id, NodeId node) {
  const Operand& operand = graph_.operand(id);
  switch (term.kind) {
    case Term::Kind::kAny: {
      if (term.slot == kNoSlot) return true;
      Binding binding;
      binding.node = operand.value();
      binding.operand = id;
      binding.text = operand.text();
      return Bind(term.slot, binding);
    }
    case Term::Kind::kValue:
    case Term::Kind::kWeight: {
      if (!operand.IsValue()) return false;
      if (term.kind == Term::Kind::kWeight &&
          !IsWeight(graph_, operand.value()))
        return false;
      Binding binding;
      binding.node = operand.value();
      return Bind(term.slot, binding);
    }
    case Term::Kind::kLiteral:
    case Term::Kind::kText: {
      if (operand.IsValue()) return false;
      const std::string_view found = operand.text();
      std::string_view wanted = term.text;
      if (term.kind == Term::Kind::kLiteral) {
        Binding binding;
        binding.operand = id;
        binding.text = found;
        if (Bind(term.slot, binding)) return true;
        wanted = match_.slots[term.slot].text;
      } else if (SameLiteral(found, wanted)) {
        return true;
      }
      if (!MayDeviate(Miss::kLiteral)) return false;
      return Deviate({Miss::kLiteral, node, NodeId(),
                      fmt::format("an operand is {}, expected {}",
                                  Quoted(found), Quoted(wanted))});
    }
    case Term::Kind::kList:
    case Term::Kind::kTuple: {
      const OperandKind wanted = term.kind == Term::Kind::kList
                                     ? OperandKind::kList
                                     : OperandKind::kTuple;
      if (operand.kind != wanted) return false;
      const std::vector<OperandId> items = Items(graph_, id);
      if (items.size() != term.items.size()) return false;
      for (size_t i = 0; i < items.size(); ++i) {
        if (!MatchTerm(term.items[i], items[i], node)) return false;
      }
      return true;
    }
    case Term::Kind::kRest:
    case Term::Kind::kCall:
      break;
  }
  return false;
}

bool Finder::TryOperands(uint32_t number, NodeId node, size_t step,
                         bool swapped) {
  const PatternLine& line = pattern_.lines[number];
  bool no_bias = false;
  std::vector<OperandId> operands =
      OperandsFor(graph_, node, linear_[number], no_bias);
  if (swapped) {
    if (operands.size() < 2) return false;
    std::swap(operands[0], operands[1]);
  }
  size_t wanted = line.operands.size();
  // What stands for no bias is written in AutoDeploy dumps alone.
  if (no_bias && wanted == operands.size() + 1) {
    const PatternTerm& bias = line.operands.back();
    Binding none;
    none.text = "None";
    if (bias.kind == Term::Kind::kAny
            ? bias.slot != kNoSlot && !Bind(bias.slot, none)
            : bias.kind != Term::Kind::kText || bias.text != none.text)
      return false;
    --wanted;
  }
  const bool fits =
      line.rest ? operands.size() >= wanted : operands.size() == wanted;
  if (!fits &&
      !Deviate({Miss::kArity, node, NodeId(),
                fmt::format("{} operands, expected {}{}", operands.size(),
                            line.rest ? "at least " : "", wanted)}))
    return false;
  const size_t common = std::min(wanted, operands.size());
  for (size_t i = 0; i < common; ++i) {
    if (!MatchTerm(line.operands[i], operands[i], node)) return false;
  }
  return Search(step);
}

// A node for a line, in every order of operands that is allowed.
bool Finder::TryNode(uint32_t number, NodeId node, size_t step) {
  const PatternLine& line = pattern_.lines[number];
  if (Taken(node)) return false;
  const size_t size = trail_.size();
  const size_t deviated = match_.deviations.size();
  match_.nodes[number] = node;
  Binding result;
  result.node = node;
  const auto attempt = [&](bool swapped) {
    if (Bind(line.slot, result) && TryOperands(number, node, step, swapped))
      return true;
    Rewind(size, deviated);
    return false;
  };
  if (attempt(false)) return true;
  if (line.commutes && attempt(true)) return true;
  const bool may_swap = MayDeviate(Miss::kOperandOrder) && !line.commutes &&
                        line.operands.size() >= 2 &&
                        line.operands[0].kind != Term::Kind::kAny &&
                        line.operands[1].kind != Term::Kind::kAny;
  if (may_swap) {
    Deviate(
        {Miss::kOperandOrder, node, NodeId(), "operands 0 and 1 are swapped"});
    if (attempt(true)) return true;
    Truncate(deviated);
  }
  match_.nodes[number] = NodeId();
  return false;
}

bool Finder::Search(size_t step) {
  if (++steps_ > kMaxSteps) return true;
  if (step == pattern_.plan.size()) return Finish();
  const Pattern::Step& next = pattern_.plan[step];
  const NodeId value = match_.slots[next.via].node;
  // An operand that the deviation took away leads nowhere.
  if (!value.valid()) return false;
  if (!next.backward) {
    for (const NodeId user : graph_.Users(value)) {
      // Values that thousands use cost what is looked at.
      if (++steps_ > kMaxSteps) return true;
      if (IsTarget(next.line, user) && TryNode(next.line, user, step + 1))
        return true;
    }
    return false;
  }
  if (IsTarget(next.line, value) && TryNode(next.line, value, step + 1))
    return true;
  if (match_.deviations.size() >= budget_) return false;
  return PastOp(next.line, value, step) ||
         WithoutCast(next.line, value, step) ||
         WithOtherOp(next.line, value, step);
}

// The line reads what an op at `value` reads: a cast, a view, or another op of
// one value.
bool Finder::PastOp(uint32_t number, NodeId value, size_t step) {
  const PatternLine& line = pattern_.lines[number];
  if (graph_[value].kind != NodeKind::kOp || Taken(value)) return false;
  const bool cast = IsCast(graph_.op(value));
  if (cast && line.cast) return false;
  const std::vector<OperandId> operands = graph_.TopOperands(value);
  if (operands.empty() || !graph_.operand(operands[0]).IsValue() ||
      (!cast && graph_.Inputs(value).size() > 1))
    return false;
  const NodeId input = graph_.operand(operands[0]).value();
  if (!IsTarget(number, input)) return false;
  const size_t size = trail_.size();
  const Miss miss = cast                       ? Miss::kExtraCast
                    : IsView(graph_.op(value)) ? Miss::kExtraView
                                               : Miss::kExtraOp;
  const std::string what =
      cast ? std::string("a cast") : EscapeTerminal(graph_.op(value));
  const size_t deviated = match_.deviations.size();
  if (match_.extra.valid() || !Deviate({miss, value, NodeId(),
                                        what + " stands between %" +
                                            EscapeTerminal(graph_[input].name) +
                                            " and where it is used"}))
    return false;
  match_.extra = value;
  // The consumer reads the cast; the line is what the cast reads.
  const Binding consumer = match_.slots[line.slot];
  match_.slots[line.slot].node = input;
  if (TryNode(number, input, step + 1)) return true;
  match_.slots[line.slot] = consumer;
  match_.extra = NodeId();
  Rewind(size, deviated);
  return false;
}

// The cast of the pattern is not there.
bool Finder::WithoutCast(uint32_t number, NodeId value, size_t step) {
  const PatternLine& line = pattern_.lines[number];
  const bool is_cast =
      graph_[value].kind == NodeKind::kOp && IsCast(graph_.op(value));
  if (!line.cast || is_cast || line.operands.empty() ||
      line.operands[0].slot == kNoSlot)
    return false;
  const size_t size = trail_.size();
  Binding same;
  same.node = value;
  const size_t deviated = match_.deviations.size();
  if (!Deviate({Miss::kMissingCast, value, NodeId(),
                "no conversion of the element type behind it"}))
    return false;
  if (Bind(line.operands[0].slot, same) && Search(step + 1)) return true;
  Rewind(size, deviated);
  return false;
}

bool Finder::WithOtherOp(uint32_t number, NodeId value, size_t step) {
  const PatternLine& line = pattern_.lines[number];
  if (graph_[value].kind != NodeKind::kOp || line.cast ||
      pattern_.lines.size() < kMinLinesForOtherOp || IsTarget(number, value) ||
      IsCast(graph_.op(value)))
    return false;
  const size_t size = trail_.size();
  const size_t deviated = match_.deviations.size();
  if (!Deviate({Miss::kOtherOp, value, NodeId(),
                fmt::format("the op is {}, expected {}",
                            EscapeTerminal(graph_.op(value)),
                            line.targets.front())}))
    return false;
  if (TryNode(number, value, step + 1)) return true;
  Rewind(size, deviated);
  return false;
}

void Finder::FindInner() {
  match_.inner.clear();
  std::vector<NodeId> flat;
  for (size_t i = 0; i < match_.nodes.size(); ++i) {
    const NodeId id = match_.nodes[i];
    if (!linear_[i] || !id.valid()) continue;
    const auto form = LinearOf(graph_, id);
    if (!form || !form->product.valid()) continue;
    match_.inner.push_back(form->product);
    if (std::find(flat.begin(), flat.end(), form->flat) == flat.end())
      flat.push_back(form->flat);
  }
  std::erase_if(flat, [&](NodeId view) {
    // More than can be held are not all held.
    if (graph_.UseCount(view) > match_.nodes.size() + match_.inner.size())
      return true;
    const std::vector<NodeId> users = graph_.Users(view);
    return !std::all_of(users.begin(), users.end(),
                        [&](NodeId user) { return match_.Holds(user); });
  });
  match_.inner.insert(match_.inner.end(), flat.begin(), flat.end());
}

// All lines have a node: looks at users outside and asks the caller.
bool Finder::Finish() {
  const size_t deviated = match_.deviations.size();
  FindInner();
  for (size_t i = 0; i < match_.nodes.size(); ++i) {
    const NodeId id = match_.nodes[i];
    if (!id.valid() || pattern_.slots[pattern_.lines[i].slot].output) continue;
    bool foreign = false;
    for (const NodeId user : graph_.Users(id)) {
      if (match_.Holds(user)) continue;
      const std::string_view name = graph_[user].name;
      if (!foreign &&
          !Deviate({Miss::kExtraUser, id, user,
                    "also used by " + (name.empty()
                                           ? "the output"
                                           : "%" + EscapeTerminal(name))})) {
        Truncate(deviated);
        return false;
      }
      foreign = true;
    }
  }
  Match proposal = match_;
  Truncate(deviated);
  if (!(*accept_)(proposal)) return false;
  if (budget_ == 0) {
    best_ = std::move(proposal);
    return true;
  }
  // Go on: a cheaper reason may be found.
  if (!proposal.deviations.empty() && (!best_ || IsCheaper(proposal, *best_)))
    best_ = std::move(proposal);
  return best_ && best_->deviations.size() == 1 &&
         best_->deviations[0].miss == Miss::kExtraUser;
}

bool Finder::SpentAll() const {
  return (budget_ > 1 ? second_steps_ : all_steps_) >
         kMaxAllSteps + kStepsPerAnchor * anchors_.size();
}

std::optional<Match> Finder::Find(NodeId anchor, const Accept& accept) {
  const auto last = static_cast<uint32_t>(pattern_.lines.size() - 1);
  if (!IsTarget(last, anchor)) return std::nullopt;
  match_ = Match();
  match_.slots.resize(pattern_.slots.size());
  match_.nodes.resize(pattern_.lines.size());
  trail_.clear();
  steps_ = 0;
  accept_ = &accept;
  best_.reset();
  // What a second reason would have told is no match that was missed.
  const bool second = budget_ > 1;
  if (SpentAll()) {
    given_up_ += !second;
    return std::nullopt;
  }
  TryNode(last, anchor, 0);
  (second ? second_steps_ : all_steps_) += steps_;
  if (steps_ > kMaxSteps) given_up_ += !second;
  return std::move(best_);
}

std::optional<Match> Finder::FindNear(NodeId anchor, const Accept& accept,
                                      size_t budget) {
  // Of a short pattern two deviations leave nothing.
  if (budget > 1 && pattern_.lines.size() < kMinLinesForTwo)
    return std::nullopt;
  budget_ = budget;
  std::optional<Match> found = Find(anchor, accept);
  budget_ = 0;
  return found;
}

bool HasForm(const Graph& graph, const Pattern& pattern, uint32_t number,
             NodeId node, uint32_t slot, NodeId value) {
  const PatternLine& line = pattern.lines[number];
  if (graph[node].kind != NodeKind::kOp) return false;
  bool target = false;
  for (const std::string& wanted : line.targets)
    target |= MatchesTarget(graph.op(node), wanted);
  const bool linear = !target && TakesLinears(line) && LinearOf(graph, node);
  bool no_bias = false;
  const std::vector<OperandId> operands =
      OperandsFor(graph, node, linear, no_bias);
  size_t wanted = line.operands.size();
  if (no_bias && wanted == operands.size() + 1 &&
      (line.operands.back().kind == Term::Kind::kAny ||
       line.operands.back().text == "None"))
    --wanted;
  if ((!target && !linear) ||
      (line.rest ? operands.size() < wanted : operands.size() != wanted))
    return false;
  for (size_t i = 0; i < wanted; ++i) {
    const PatternTerm& term = line.operands[i];
    const Operand& operand = graph.operand(operands[i]);
    const bool is_value =
        term.kind == Term::Kind::kValue || term.kind == Term::Kind::kWeight;
    if (is_value != operand.IsValue() && term.kind != Term::Kind::kAny)
      return false;
    if (is_value && term.slot == slot && operand.value() != value) return false;
    if (term.kind == Term::Kind::kWeight && !IsWeight(graph, operand.value()))
      return false;
    if (term.kind == Term::Kind::kText &&
        !SameLiteral(operand.text(), term.text))
      return false;
  }
  return true;
}

}  // namespace lamina::graph
