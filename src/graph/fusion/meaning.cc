// SPDX-License-Identifier: Apache-2.0
//
// Long, because terms, their normal form and their comparison are one idea.
#include "graph/fusion/meaning.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>

#include "base/decimal.h"
#include "base/text.h"
#include "graph/types.h"

namespace lamina::fusion {

using graph::Graph;
using graph::NodeId;

std::string_view Name(Fit fit) {
  switch (fit) {
    case Fit::kEqual:
      return "equal";
    case Fit::kLayout:
      return "layout";
    case Fit::kPart:
      return "part";
    case Fit::kConflict:
      return "conflict";
    case Fit::kUnknown:
      return "unknown";
  }
  return {};
}

uint32_t Meaning::Intern(Term term) {
  for (uint32_t i = 0; i < terms_.size(); ++i) {
    const Term& t = terms_[i];
    if (t.step == term.step && t.args == term.args && t.value == term.value &&
        t.piece == term.piece)
      return i;
  }
  terms_.push_back(std::move(term));
  return static_cast<uint32_t>(terms_.size() - 1);
}

namespace {

// Whether `second` names the second half of what `first` names the first of:
// "half 1" and "half 0", or "[-1,64,128]" and "[-1,0,64]".
bool AreHalves(std::string_view second, std::string_view first) {
  if (second == "half 1") return first == "half 0";
  const auto cut = [](std::string_view text) -> std::vector<std::string_view> {
    if (!text.starts_with('[') || !text.ends_with(']')) return {};
    text = text.substr(1, text.size() - 2);
    if (text.find_first_of("[]") != std::string_view::npos) return {};
    std::vector<std::string_view> out;
    for (size_t at = 0; at != std::string_view::npos;) {
      const size_t comma = text.find(',', at);
      out.push_back(text.substr(at, comma - at));
      at = comma == std::string_view::npos ? comma : comma + 1;
    }
    return out;
  };
  const auto a = cut(second);
  const auto b = cut(first);
  if (a.size() != 3 || b.size() != 3 || a[0] != b[0]) return false;
  const auto middle = ParseInt(a[1]);
  const auto end = ParseInt(a[2]);
  return middle && end && ParseInt(b[1]) == 0 && ParseInt(b[2]) == middle &&
         *middle > 0 && *end - *middle == *middle;
}

}  // namespace

// The term of which `cat` is the rotation: cat(-second half, first half).
std::optional<uint32_t> Meaning::Rotated(uint32_t cat) const {
  const Term& whole = terms_[cat];
  if (whole.step != "cat" || whole.args.size() != 2) return std::nullopt;
  const Term& first = terms_[whole.args[0]];
  if (first.step != "neg") return std::nullopt;
  const Term& a = terms_[first.args[0]];
  const Term& b = terms_[whole.args[1]];
  constexpr std::string_view kPart = "part";
  if (a.step.starts_with(kPart) && b.step.starts_with(kPart)) {
    if (a.args == b.args &&
        AreHalves(std::string_view(a.step).substr(kPart.size()),
                  std::string_view(b.step).substr(kPart.size())))
      return a.args[0];
    return std::nullopt;
  }
  if (!a.step.empty() || !b.step.empty() || a.value != b.value ||
      !a.value.valid())
    return std::nullopt;
  // The whole value is the one whose piece both begin with.
  for (uint32_t i = 0; i < terms_.size(); ++i) {
    const Term& t = terms_[i];
    if (t.step.empty() && t.value == a.value && a.piece.starts_with(t.piece) &&
        b.piece.starts_with(t.piece) &&
        AreHalves(std::string_view(a.piece).substr(t.piece.size()),
                  std::string_view(b.piece).substr(t.piece.size())))
      return i;
  }
  return std::nullopt;
}

// x when the two terms are x / 2 and 1 + tanh(0.7979 (x + 0.0447 x^3)), in
// either order: their product is GELU(x) (Hendrycks and Gimpel, 2016).
std::optional<uint32_t> Meaning::TanhGelu(uint32_t a, uint32_t b) const {
  const auto scaled = [&](uint32_t id, double by) -> std::optional<uint32_t> {
    constexpr double kNear = 1e-3;
    std::string_view step = terms_[id].step;
    if (!step.starts_with("scale[") || terms_[id].args.size() != 1)
      return std::nullopt;
    step = step.substr(6, step.size() - 7);
    const auto number = ParseDouble(step);
    if (!number || std::abs(*number - by) > kNear) return std::nullopt;
    return terms_[id].args[0];
  };
  for (int turn = 0; turn < 2; ++turn, std::swap(a, b)) {
    const auto x = scaled(a, 0.5);
    if (!x || terms_[b].step != "shift[1]") continue;
    const Term& tanh = terms_[terms_[b].args[0]];
    if (tanh.step != "tanh" || tanh.args.size() != 1) continue;
    const auto sum = scaled(tanh.args[0], 0.7978845608);
    if (!sum || terms_[*sum].step != "add" || terms_[*sum].args.size() != 2)
      continue;
    const std::vector<uint32_t>& parts = terms_[*sum].args;
    for (size_t i = 0; i < 2; ++i) {
      const auto cube = scaled(parts[i], 0.044715);
      if (cube && parts[1 - i] == *x && !terms_[*cube].args.empty() &&
          terms_[*cube].args[0] == *x &&
          (terms_[*cube].step == "pow[3]" || terms_[*cube].step == "pow[3.0]"))
        return x;
    }
  }
  return std::nullopt;
}

// Brings a new term into normal form.
uint32_t Meaning::Make(std::string step, std::vector<uint32_t> args) {
  const auto is = [&](uint32_t id, std::string_view name) {
    return terms_[id].step == name;
  };
  if (step == "mul" && args.size() == 2) {
    if (args[0] == args[1]) return Make("square", {args[0]});
    if (const auto x = TanhGelu(args[0], args[1]))
      return Make("gelu_tanh", {*x});
    for (int turn = 0; turn < 2; ++turn, std::swap(args[0], args[1])) {
      // x * rsqrt(mean(x^2) + eps), in this or the other order.
      const uint32_t root = args[1];
      if (is(root, "rsqrt")) {
        uint32_t sum = terms_[root].args[0];
        if (is(sum, "shift")) sum = terms_[sum].args[0];
        if ((is(sum, "mean") || is(sum, "sum")) &&
            is(terms_[sum].args[0], "square") &&
            terms_[terms_[sum].args[0]].args[0] == args[0])
          return Make(is(sum, "mean") ? "rms" : "l2", {args[0]});
      }
      const Term& weight = terms_[args[1]];
      if (is(args[0], "rms") || is(args[0], "l2")) {
        const std::string norm = "norm_" + terms_[args[0]].step;
        const uint32_t x = terms_[args[0]].args[0];
        if (weight.step.empty() && weight.weight)
          return Make(norm, {x, args[1]});
        if (weight.step == "shift[1]" && terms_[weight.args[0]].weight)
          return Make(norm + "_plus_one", {x, weight.args[0]});
      }
    }
    if (args[0] > args[1]) std::swap(args[0], args[1]);
  } else if (step == "add" && args.size() == 2) {
    // x * cos + cat(-half of x, other half of x) * sin.
    for (int turn = 0; turn < 2; ++turn, std::swap(args[0], args[1])) {
      if (!is(args[0], "mul") || !is(args[1], "mul")) break;
      for (const uint32_t cat : terms_[args[1]].args) {
        const auto from = Rotated(cat);
        if (!from) continue;
        const std::vector<uint32_t> plain = terms_[args[0]].args;
        const auto other = [&](const std::vector<uint32_t>& two, uint32_t one) {
          return two[0] == one ? two[1] : two[0];
        };
        const bool has = plain[0] == *from || plain[1] == *from;
        if (!has) continue;
        return Make("rope", {*from, other(plain, *from),
                             other(terms_[args[1]].args, cat)});
      }
    }
    if (args[0] > args[1]) std::swap(args[0], args[1]);
  } else if (step == "square" && is(args[0], "relu")) {
    return Make("relu2", {terms_[args[0]].args[0]});
  }
  // x * sigmoid(x) is silu(x).
  if (step == "mul" && args.size() == 2) {
    for (int turn = 0; turn < 2; ++turn, std::swap(args[0], args[1])) {
      if (is(args[1], "sigmoid") && terms_[args[1]].args[0] == args[0])
        return Make("silu", {args[0]});
    }
  }
  Term term;
  term.step = std::move(step);
  term.args = std::move(args);
  return Intern(std::move(term));
}

std::vector<std::string> Meaning::Steps(const std::vector<uint32_t>& of) const {
  std::vector<std::string> out;
  absl::flat_hash_set<uint32_t> seen;
  std::vector<uint32_t> stack(of.rbegin(), of.rend());
  while (!stack.empty()) {
    const uint32_t id = stack.back();
    stack.pop_back();
    if (!seen.insert(id).second || terms_[id].step.empty()) continue;
    out.push_back(terms_[id].step);
    stack.insert(stack.end(), terms_[id].args.begin(), terms_[id].args.end());
  }
  return out;
}

// --- text of a table ---

namespace {

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '[' || c == ']' || c == '-';
}

constexpr int kDeepest = 64;

// One term at `pos`; nothing when there is none.
std::optional<uint32_t> ParseTerm(Meaning& out, std::string_view text,
                                  size_t& pos, int depth) {
  while (pos < text.size() && text[pos] == ' ') ++pos;
  const size_t begin = pos;
  while (pos < text.size() && IsWordByte(text[pos])) ++pos;
  if (pos == begin || depth > kDeepest) return std::nullopt;
  const std::string word(text.substr(begin, pos - begin));
  if (pos == text.size() || text[pos] != '(') {
    // A value: its letter is its piece, since there is no node.
    Meaning::Term value;
    value.piece = word;
    value.weight = word[0] == 'w';
    return out.Intern(std::move(value));
  }
  std::vector<uint32_t> args;
  do {
    ++pos;
    const auto arg = ParseTerm(out, text, pos, depth + 1);
    if (!arg) return std::nullopt;
    args.push_back(*arg);
    while (pos < text.size() && text[pos] == ' ') ++pos;
  } while (pos < text.size() && text[pos] == ',');
  if (pos == text.size() || text[pos] != ')') return std::nullopt;
  ++pos;
  return out.Make(word, std::move(args));
}

}  // namespace

bool Meaning::Parse(std::string_view text) {
  size_t pos = 0;
  for (;;) {
    const auto term = ParseTerm(*this, text, pos, 0);
    if (!term) return false;
    results_.push_back(*term);
    while (pos < text.size() && text[pos] == ' ') ++pos;
    if (pos == text.size()) return true;
    if (text[pos++] != ';') return false;
  }
}

// --- a chain of a graph ---

class MeaningReader {
 public:
  MeaningReader(const Graph& graph, const std::vector<NodeId>& nodes,
                const OpTable& ops, Meaning& out)
      : graph_(graph), ops_(ops), out_(out) {
    for (const NodeId id : nodes) inside_.insert(id);
    const std::vector<NodeId> all = WithItems(nodes);
    for (const NodeId id : all) made_[id] = Read(id);
    for (const NodeId id : all) {
      bool leaves = graph_.UseCount(id) == 0;
      graph_.ForEachUse(id, [&](graph::OperandId, const graph::Operand& use) {
        leaves |= !inside_.contains(use.owner());
      });
      const uint32_t term = made_[id];
      if (!leaves || out_.terms_[term].step.empty() ||
          out_.terms_[term].step == "(results)")
        continue;
      if (std::find(out_.results_.begin(), out_.results_.end(), term) ==
          out_.results_.end())
        out_.results_.push_back(term);
    }
    CompareTypes(nodes);
  }

 private:
  // The results of an op inside that are taken apart outside are results of
  // the chain, not a use of all of them.
  std::vector<NodeId> WithItems(const std::vector<NodeId>& nodes) {
    std::vector<NodeId> out;
    for (const NodeId id : nodes) {
      out.push_back(id);
      if (!graph::SplitResult(graph_[id].result).tuple) continue;
      for (const NodeId user : graph_.Users(id)) {
        if (graph::MatchesTarget(graph_.op(user), "builtin.getitem") &&
            inside_.insert(user).second)
          out.push_back(user);
      }
    }
    return out;
  }

  std::string_view TypeOf(NodeId id) const {
    return graph::SplitResult(graph_[id].result).dtype;
  }
  static bool IsFloat(std::string_view type) {
    return type == "torch.float32" || type == "torch.bfloat16" ||
           type == "torch.float16" || type == "torch.float64";
  }

  void CompareTypes(const std::vector<NodeId>& nodes) {
    const std::string_view out = TypeOf(nodes.back());
    if (!IsFloat(out)) return;
    for (const NodeId id : nodes) {
      for (const NodeId input : graph_.Inputs(id)) {
        if (inside_.contains(input) ||
            graph_[input].kind == graph::NodeKind::kWeight)
          continue;
        const std::string_view type = TypeOf(input);
        if (!IsFloat(type)) continue;
        if (type != out)
          out_.result_type_ = std::string(graph::ShortDType(out)) + " of " +
                              std::string(graph::ShortDType(type));
        return;
      }
    }
  }

  uint32_t Outside(NodeId id) {
    const auto found = made_.find(id);
    if (found != made_.end() && inside_.contains(id)) return found->second;
    // The halves of one tensor are often cut in front of the chain.
    const std::string piece = PieceOf(id);
    if (!piece.empty() && !graph_.Inputs(id).empty())
      return Value(graph_.Inputs(id)[0], piece);
    return Value(id, {});
  }

  uint32_t Value(NodeId id, std::string piece) {
    Meaning::Term term;
    term.value = id;
    term.weight = graph_[id].kind == graph::NodeKind::kWeight;
    term.piece = std::move(piece);
    return out_.Intern(std::move(term));
  }

  // Which part of its first operand a node is; empty: no part.
  std::string PieceOf(NodeId id) const {
    const std::string_view op = graph_.op(id);
    const bool cut = graph::MatchesTarget(op, "aten.slice") ||
                     graph::MatchesTarget(op, "aten.narrow") ||
                     graph::MatchesTarget(op, "aten.select");
    if (graph::MatchesTarget(op, "builtin.getitem")) {
      const Graph::Element element = graph_.ElementOf(id);
      if (!element.value.valid()) return {};
      const std::string_view from = graph_.op(element.value);
      if (graph::MatchesTarget(from, "aten.split") ||
          graph::MatchesTarget(from, "aten.split_with_sizes") ||
          graph::MatchesTarget(from, "aten.chunk") ||
          graph::MatchesTarget(from, "aten.unbind") ||
          graph::MatchesTarget(from, "fn.split_output"))
        return (IsHalf(id, element.value) ? "half " : "part ") +
               std::to_string(element.index);
      return {};
    }
    if (!cut) return {};
    if (graph::MatchesTarget(op, "aten.slice")) {
      std::string whole = SliceOf(id);
      if (!whole.empty()) return whole;
    }
    return Literals(id);
  }

  std::vector<int64_t> DimsOf(NodeId id) const {
    std::vector<int64_t> out;
    const auto dims =
        graph::SplitShape(graph::SplitResult(graph_[id].result).shape);
    if (!dims) return out;
    for (const auto& dim : *dims) out.push_back(ParseInt(dim).value_or(-1));
    return out;
  }

  // Whether a result of a split is half of what is split.
  bool IsHalf(NodeId part, NodeId split) const {
    const std::vector<NodeId> inputs = graph_.Inputs(split);
    if (inputs.empty()) return false;
    const std::vector<int64_t> own = DimsOf(part);
    const std::vector<int64_t> all = DimsOf(inputs[0]);
    if (own.size() != all.size()) return false;
    for (size_t i = 0; i < own.size(); ++i) {
      if (own[i] > 0 && 2 * own[i] == all[i]) return true;
    }
    return false;
  }

  // "[dim,begin,end]" with the dimension counted from the end and the end of
  // the tensor in place of "the largest integer"; empty: not known.
  std::string SliceOf(NodeId id) const {
    std::vector<int64_t> said;
    for (const graph::OperandId operand : graph_.TopOperands(id)) {
      const graph::Operand& one = graph_.operand(operand);
      if (one.IsValue()) continue;
      const auto number = ParseInt(one.text());
      if (!number) return {};
      said.push_back(*number);
    }
    if (said.size() != 3 || graph_.Inputs(id).empty()) return {};
    const std::vector<int64_t> dims = DimsOf(graph_.Inputs(id)[0]);
    const auto rank = static_cast<int64_t>(dims.size());
    if (said[0] >= 0) said[0] -= rank;
    if (said[0] < -rank || said[0] >= 0) return {};
    const int64_t size = dims[static_cast<size_t>(said[0] + rank)];
    if (size < 0) return {};
    for (size_t i = 1; i < 3; ++i) {
      if (said[i] < 0) said[i] += size;
      said[i] = std::clamp<int64_t>(said[i], 0, size);
    }
    return fmt::format("[{},{},{}]", said[0], said[1], said[2]);
  }

  std::string Literals(NodeId id) const {
    std::string out = "[";
    for (const graph::OperandId operand : graph_.TopOperands(id)) {
      const graph::Operand& one = graph_.operand(operand);
      if (one.IsValue()) continue;
      if (out.size() > 1) out += ",";
      out += one.text();
    }
    return out + "]";
  }

  uint32_t Read(NodeId id) {
    const std::string_view op = graph_.op(id);
    const std::vector<NodeId> inputs = graph_.Inputs(id);
    if (inputs.empty()) return Value(id, {});
    const std::string piece = PieceOf(id);
    if (!piece.empty()) {
      // The split in between is a view: the part is one of what it splits.
      const uint32_t from = Outside(inputs[0]);
      const Meaning::Term& term = out_.terms_[from];
      if (term.step.empty()) return Value(term.value, term.piece + piece);
      return out_.Make("part" + piece, {from});
    }
    if (graph::MatchesTarget(op, "builtin.getitem")) {
      const Graph::Element element = graph_.ElementOf(id);
      const uint32_t from = Outside(inputs[0]);
      const Meaning::Term term = out_.terms_[from];
      if (element.value.valid() && term.step == "(results)") {
        const auto at = static_cast<size_t>(element.index);
        if (element.index >= 0 && at < term.args.size()) return term.args[at];
      }
      return out_.Make(
          element.value.valid() ? fmt::format("get[{}]", element.index) : "get",
          {from});
    }
    if (ops_.ClassOf(op) == OpClass::kView) return Outside(inputs[0]);
    if (ops_.MayBeFree(op)) {
      const uint32_t from = Outside(inputs[0]);
      const std::string_view type = TypeOf(id);
      const std::string_view before = TypeOf(inputs[0]);
      if (type.empty() || type == before || (IsFloat(type) && IsFloat(before)))
        return from;
      return out_.Make("to[" + std::string(graph::ShortDType(type)) + "]",
                       {from});
    }
    if (const KnownOp* const known = ops_.Find(op);
        known != nullptr && !known->means.empty() && !known->takes.empty()) {
      if (const auto term = Expand(id, *known, inputs)) return *term;
    }
    return ReadStep(id, op, inputs);
  }

  // What a fused op inside the chain computes, in place of the op.
  std::optional<uint32_t> Expand(NodeId id, const KnownOp& op,
                                 const std::vector<NodeId>& inputs) {
    if (op.means.size() != 1 || inputs.size() < op.takes.size())
      return std::nullopt;
    Meaning text;
    if (!text.Parse(op.means[0])) return std::nullopt;
    absl::flat_hash_map<std::string, uint32_t> values;
    for (size_t i = 0; i < op.takes.size(); ++i) {
      if (op.takes[i].find('|') != std::string::npos) return std::nullopt;
      values[op.takes[i]] = Outside(inputs[i]);
    }
    std::vector<uint32_t> made;
    for (const uint32_t result : text.results()) {
      const auto term = Copy(text, result, values);
      if (!term) return std::nullopt;
      made.push_back(*term);
    }
    (void)id;
    if (made.size() == 1) return made[0];
    Meaning::Term all;
    all.step = "(results)";
    all.args = std::move(made);
    return out_.Intern(std::move(all));
  }

  std::optional<uint32_t> Copy(
      const Meaning& text, uint32_t id,
      const absl::flat_hash_map<std::string, uint32_t>& values) {
    const Meaning::Term& term = text[id];
    if (term.step.empty()) {
      const auto found = values.find(term.piece);
      if (found == values.end()) return std::nullopt;
      return found->second;
    }
    std::vector<uint32_t> args;
    for (const uint32_t arg : term.args) {
      const auto copied = Copy(text, arg, values);
      if (!copied) return std::nullopt;
      args.push_back(*copied);
    }
    return out_.Make(term.step, std::move(args));
  }

  uint32_t ReadStep(NodeId id, std::string_view op,
                    const std::vector<NodeId>& inputs) {
    std::vector<uint32_t> args;
    // Operands in order, twice where a value stands twice.
    std::vector<std::string_view> literals;
    for (const graph::OperandId operand : graph_.TopOperands(id)) {
      const graph::Operand& one = graph_.operand(operand);
      if (one.IsValue()) {
        args.push_back(Outside(one.value()));
      } else {
        literals.push_back(one.text());
      }
    }
    if (args.empty()) {
      for (const NodeId input : inputs) args.push_back(Outside(input));
    }
    const auto matches = [&](std::string_view name) {
      return graph::MatchesTarget(op, name);
    };
    const bool scalar = args.size() == 1;
    if (matches("aten.mul") && scalar)
      return out_.Make("scale[" + First(literals) + "]", std::move(args));
    if (matches("aten.mul") && args.size() == 2)
      return out_.Make("mul", std::move(args));
    if (matches("aten.add") && scalar) {
      const std::string by = First(literals);
      // One is part of what a norm means; another number is an epsilon.
      const auto number = ParseDouble(by);
      const bool one = number && *number == 1.0;
      return out_.Make(one ? "shift[1]" : "shift", std::move(args));
    }
    if (matches("aten.add") && args.size() == 2 && Unread(literals).empty())
      return out_.Make("add", std::move(args));
    if (matches("aten.pow") && scalar) {
      const auto number = ParseDouble(First(literals));
      if (number && *number == 2.0) return out_.Make("square", std::move(args));
    }
    if (matches("aten.gelu")) {
      for (const std::string_view literal : literals) {
        if (Contains(literal, "tanh"))
          return out_.Make("gelu_tanh", std::move(args));
      }
      // Dumps of AutoDeploy drop the keyword.
      if (graph_.dialect.empty()) {
        out_.hidden_keyword_ = true;
        return out_.Make("gelu", std::move(args));
      }
      return out_.Make("gelu_erf", std::move(args));
    }
    if (scalar && (matches("aten.mean") || matches("aten.sum") ||
                   matches("aten.softmax") || matches("aten._softmax"))) {
      std::string step(op.substr(op.find('.') + 1));
      step.resize(step.find('.') == std::string::npos ? step.size()
                                                      : step.find('.'));
      if (step == "_softmax") step = "softmax";
      return out_.Make(step + OtherDim(inputs[0], First(literals)),
                       std::move(args));
    }
    std::string step(op.starts_with("aten.") ? op.substr(5) : op);
    if (op.starts_with("aten.")) {
      const size_t dot = step.find('.');
      if (dot != std::string::npos) step.resize(dot);
    }
    if (step == "layer_norm" || step == "native_layer_norm") {
      step = "norm_layer";
    } else if (step == "rms_norm") {
      step = "norm_rms";
    } else if (step.starts_with("clamp") || step == "hardtanh") {
      step = "clamp";
    }
    if (step == "cat") {
      // The list of what it joins is a literal as well; the last one is the
      // dimension.
      if (literals.size() > 1)
        step += OtherDim(id, std::string(literals.back()));
    } else if (op.starts_with("aten.") && !step.starts_with("norm_") &&
               step != "topk") {
      // Bounds, exponents and factors are part of what is computed. Of norms
      // they are sizes and epsilons, of topk the number that it keeps.
      step += Unread(literals);
    }
    return out_.Make(std::move(step), std::move(args));
  }

  // "[-7.0,7.0]": literals that no step of its own takes up; empty: none, or
  // only those that change nothing.
  static std::string Unread(const std::vector<std::string_view>& literals) {
    std::string out;
    for (std::string_view one : literals) {
      std::string text(one);
      std::erase(text, ' ');
      if (text == "alpha=1" || text == "alpha=1.0" || text == "None" ||
          text.starts_with("dtype=") || text.starts_with("device=") ||
          text.starts_with("layout=") || text.starts_with("memory_format=") ||
          text.find('%') != std::string::npos)
        continue;
      out += out.empty() ? "[" : ",";
      out += text;
    }
    return out.empty() ? out : out + "]";
  }

  static std::string First(const std::vector<std::string_view>& literals) {
    return literals.empty() ? std::string() : std::string(literals[0]);
  }

  // "" when a reduction is over the last dimension, else which one.
  std::string OtherDim(NodeId input, std::string dim) const {
    std::erase_if(dim, [](char c) { return c == '[' || c == ']' || c == ' '; });
    if (dim == "-1") return {};
    const auto dims =
        graph::SplitShape(graph::SplitResult(graph_[input].result).shape);
    const auto number = ParseInt(dim);
    if (dims && number && *number + 1 == static_cast<int64_t>(dims->size()))
      return {};
    return "[" + dim + "]";
  }

  const Graph& graph_;
  const OpTable& ops_;
  Meaning& out_;
  absl::flat_hash_set<NodeId> inside_;
  absl::flat_hash_map<NodeId, uint32_t> made_;
};

Meaning::Meaning(const Graph& graph, const std::vector<NodeId>& nodes,
                 const OpTable& ops) {
  if (!nodes.empty()) MeaningReader(graph, nodes, ops, *this);
}

// --- comparison ---

namespace {

constexpr uint32_t kFree = 0xffffffff;
// Terms of norms and gates are small; more orders than this are not tried.
constexpr int kMostTries = 10000;

class Matcher {
 public:
  Matcher(const Meaning& op, const Meaning& chain) : op_(op), chain_(chain) {}

  using Values = std::map<uint32_t, uint32_t>;  // value of the op: term

  // Ways to read `have` as `want` of the op.
  bool Match(uint32_t want, uint32_t have, Values& values) {
    if (--tries_ < 0) return false;
    const Meaning::Term& w = op_[want];
    if (w.step.empty()) {
      if (w.weight && !chain_[have].weight) return false;
      const auto [at, fresh] = values.try_emplace(want, have);
      return fresh || at->second == have;
    }
    const Meaning::Term& h = chain_[have];
    const bool gelu = h.step == "gelu" && w.step.starts_with("gelu_");
    if ((h.step != w.step && !gelu) || h.args.size() != w.args.size())
      return false;
    const Values before = values;
    if (All(w.args, h.args, values)) return true;
    if ((w.step != "mul" && w.step != "add") || h.args.size() != 2)
      return false;
    values = before;
    return All(w.args, {h.args[1], h.args[0]}, values);
  }

 private:
  bool All(const std::vector<uint32_t>& want, const std::vector<uint32_t>& have,
           Values& values) {
    for (size_t i = 0; i < want.size(); ++i) {
      if (!Match(want[i], have[i], values)) return false;
    }
    return true;
  }

  const Meaning& op_;
  const Meaning& chain_;
  int tries_ = kMostTries;
};

std::vector<std::string> Without(std::vector<std::string> all,
                                 const std::vector<std::string>& less) {
  for (const std::string& word : less) {
    const auto at = std::find(all.begin(), all.end(), word);
    if (at != all.end()) all.erase(at);
  }
  return all;
}

// All terms below the results, results first.
std::vector<uint32_t> Below(const Meaning& meaning) {
  std::vector<uint32_t> out;
  std::vector<uint32_t> stack(meaning.results().rbegin(),
                              meaning.results().rend());
  while (!stack.empty()) {
    const uint32_t id = stack.back();
    stack.pop_back();
    if (std::find(out.begin(), out.end(), id) != out.end()) continue;
    out.push_back(id);
    for (const uint32_t arg : meaning[id].args) stack.push_back(arg);
  }
  return out;
}

// Whether the values stand as the op takes them.
std::string LayoutOf(const KnownOp& op, const Meaning& text,
                     const Meaning& chain, const Matcher::Values& values) {
  const auto bound = [&](std::string_view letter) -> const Meaning::Term* {
    for (const auto& [want, have] : values) {
      if (text[want].piece == letter) return &chain[have];
    }
    return nullptr;
  };
  for (const std::string& take : op.takes) {
    const size_t bar = take.find('|');
    if (bar == std::string::npos) continue;
    const Meaning::Term* const a = bound(std::string_view(take).substr(0, bar));
    const Meaning::Term* const b =
        bound(std::string_view(take).substr(bar + 1));
    if (a == nullptr || b == nullptr) continue;
    if (a->piece.empty() || b->piece.empty() || a->value != b->value)
      return "inputs are separate, the op takes one packed tensor: a cat or a "
             "merged GEMM is needed";
  }
  return {};
}

Judged CompareOne(const Meaning& chain, const KnownOp& op,
                  const Meaning& text) {
  const auto is_value = [&](uint32_t id) { return chain[id].step.empty(); };
  Judged best{Fit::kConflict, {}};
  Matcher::Values part;
  uint32_t part_root = kFree;
  bool inner_leaves = false;
  for (const uint32_t have : Below(chain)) {
    if (is_value(have)) continue;
    const bool root = std::find(chain.results().begin(), chain.results().end(),
                                have) != chain.results().end();
    for (const uint32_t want : text.results()) {
      Matcher matcher(text, chain);
      Matcher::Values values;
      if (text[want].step.empty() || !matcher.Match(want, have, values))
        continue;
      const bool leaves =
          std::all_of(values.begin(), values.end(),
                      [&](const auto& one) { return is_value(one.second); });
      if (root && leaves) {
        // The op must also give what else leaves the chain.
        bool all = true;
        for (const uint32_t other : chain.results()) {
          bool given = false;
          for (const uint32_t result : text.results()) {
            Matcher::Values same = values;
            Matcher again(text, chain);
            given |= again.Match(result, other, same);
          }
          all &= given;
        }
        const std::vector<std::string> more =
            Without(text.Steps(text.results()), chain.Steps(chain.results()));
        if (all && !more.empty() && chain.hidden_keyword())
          return {Fit::kUnknown, "approximate is not in the dump"};
        if (all && more.empty()) {
          if (!chain.result_type().empty())
            return {Fit::kConflict, "the result is " + chain.result_type()};
          std::string layout = LayoutOf(op, text, chain, values);
          if (!op.needs.empty()) {
            if (!layout.empty()) layout += "; ";
            layout += op.needs;
          }
          if (layout.empty()) return {Fit::kEqual, {}};
          return {Fit::kLayout, std::move(layout)};
        }
        if (!all) inner_leaves = true;
        continue;
      }
      // The end of the chain on values that it computes before, or its begin.
      if ((root || leaves) && part_root == kFree) {
        part_root = have;
        part = values;
      }
    }
  }
  const std::vector<std::string> own = text.Steps(text.results());
  const std::vector<std::string> all = chain.Steps(chain.results());
  const std::vector<std::string> stays = Without(all, own);
  const std::vector<std::string> more = Without(own, all);
  if (part_root != kFree && more.empty() && !stays.empty()) {
    return {Fit::kPart, fmt::format("partial: {}; {} {}", fmt::join(own, ", "),
                                    fmt::join(stays, ", "),
                                    stays.size() == 1 ? "stays" : "stay")};
  }
  if (inner_leaves) {
    best.why_not = "a value inside is used outside";
  } else if (!more.empty() && !stays.empty()) {
    best.why_not = fmt::format("has {} in place of {}", fmt::join(more, ", "),
                               fmt::join(stays, ", "));
  } else if (!more.empty()) {
    best.why_not = fmt::format("does more: {}", fmt::join(more, ", "));
  } else if (!stays.empty()) {
    best.why_not = fmt::format("drops {}", fmt::join(stays, ", "));
  } else {
    best.why_not = "the same steps in another order";
  }
  return best;
}

}  // namespace

Judged Compare(const Meaning& chain, const KnownOp& op) {
  if (op.means.empty()) return {Fit::kUnknown, "unknown meaning"};
  std::optional<Judged> best;
  for (const std::string& means : op.means) {
    Meaning text;
    if (!text.Parse(means)) return {Fit::kUnknown, "unknown meaning"};
    Judged one = CompareOne(chain, op, text);
    if (!best || one.fit < best->fit) best = std::move(one);
  }
  return *best;
}

}  // namespace lamina::fusion
