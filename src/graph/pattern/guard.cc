// SPDX-License-Identifier: Apache-2.0

#include "graph/pattern/guard.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "graph/pattern/linear_form.h"
#include "graph/types.h"

namespace lamina::graph {

namespace {

using Verdict = GuardResult::Verdict;
using Kind = Term::Kind;

// What a check takes: v a value of the pattern, c a literal of it, t text;
// * repeats the last.
struct CheckForm {
  std::string_view name;
  std::string_view arguments;
};
constexpr CheckForm kChecks[] = {
    {"rank", "vt"},        {"dtype", "vt*"},     {"same_dtype", "vv"},
    {"shape", "vt"},       {"same_shape", "vv"}, {"divisible", "vtt"},
    {"grows_only", "vvt"}, {"all_users", "v"},   {"first_user", "vv"},
    {"option", "ct"},
};

class Checker {
 public:
  Checker(const Graph& graph, const Pattern& pattern, const Match& match,
          const OptionOf& option)
      : graph_(graph), pattern_(pattern), match_(match), option_(option) {}

  GuardResult Run(const Term& call) const {
    const auto& a = call.items;
    if (call.text == "rank") return Rank(a);
    if (call.text == "dtype") return DType(a);
    if (call.text == "same_dtype") {
      return Same(a, Miss::kDType, DTypeOf(a[0]), DTypeOf(a[1]));
    }
    if (call.text == "shape") {
      return Same(a, Miss::kShape, ShapeOf(a[0]),
                  std::optional(CanonicalShape(a[1].text)));
    }
    if (call.text == "same_shape")
      return Same(a, Miss::kShape, ShapeOf(a[0]), ShapeOf(a[1]));
    if (call.text == "divisible") return Divisible(a);
    if (call.text == "grows_only") return GrowsOnly(a);
    if (call.text == "all_users") return AllUsers(a);
    if (call.text == "first_user") return FirstUser(a);
    if (call.text == "option") return Option(a);
    return {Verdict::kUnknown, {}};
  }

 private:
  const Binding& Bound(const Term& term) const {
    return match_.slots[pattern_.Find(term.text)];
  }
  NodeId Value(const Term& term) const { return Bound(term).node; }

  ResultText Result(const Term& term) const {
    const NodeId id = Value(term);
    return id.valid() ? SplitResult(graph_[id].result) : ResultText();
  }
  std::optional<std::string> ShapeOf(const Term& term) const {
    const ResultText result = Result(term);
    if (result.tuple || !SplitShape(result.shape)) return std::nullopt;
    return CanonicalShape(result.shape);
  }
  std::optional<std::string> DTypeOf(const Term& term) const {
    const ResultText result = Result(term);
    if (result.tuple || !DTypeBytes(result.dtype)) return std::nullopt;
    return std::string(result.dtype);
  }
  std::optional<std::vector<std::string>> Dims(const Term& term) const {
    const auto shape = ShapeOf(term);
    if (!shape) return std::nullopt;
    std::vector<std::string> out;
    const auto dims = SplitShape(*shape);
    for (const std::string_view dim : *dims) out.emplace_back(dim);
    return out;
  }
  // A dimension by its number; negative ones count from the end.
  static std::optional<size_t> DimIndex(const Term& term, size_t rank) {
    int64_t index = ParseInt(term.text).value_or(0);
    if (index < 0) index += static_cast<int64_t>(rank);
    if (index < 0 || index >= static_cast<int64_t>(rank)) return std::nullopt;
    return static_cast<size_t>(index);
  }

  GuardResult Fails(Miss miss, NodeId node, std::string evidence) const {
    return {Verdict::kFails, {miss, node, NodeId(), std::move(evidence)}};
  }
  GuardResult Same(const std::vector<Term>& a, Miss miss,
                   const std::optional<std::string>& x,
                   const std::optional<std::string>& y) const {
    if (!x || !y) return {Verdict::kUnknown, {}};
    if (*x == *y) return {};
    return Fails(miss, Value(a[0]),
                 fmt::format("{} of {} is {}, expected {}",
                             miss == Miss::kDType ? "dtype" : "shape",
                             NameOf(a[0]), *x, *y));
  }
  std::string NameOf(const Term& term) const {
    const NodeId id = Value(term);
    return id.valid() ? "%" + EscapeTerminal(graph_[id].name) : term.text;
  }

  GuardResult Rank(const std::vector<Term>& a) const {
    const auto dims = Dims(a[0]);
    if (!dims) return {Verdict::kUnknown, {}};
    if (static_cast<int64_t>(dims->size()) == ParseInt(a[1].text)) return {};
    return Fails(Miss::kShape, Value(a[0]),
                 fmt::format("{} has {} dimensions, expected {}", NameOf(a[0]),
                             dims->size(), a[1].text));
  }

  GuardResult DType(const std::vector<Term>& a) const {
    const auto found = DTypeOf(a[0]);
    if (!found) return {Verdict::kUnknown, {}};
    std::string wanted;
    for (size_t i = 1; i < a.size(); ++i) {
      if (a[i].text == *found) return {};
      wanted += (i > 1 ? " or " : "") + a[i].text;
    }
    return Fails(Miss::kDType, Value(a[0]),
                 fmt::format("dtype of {} is {}, expected {}", NameOf(a[0]),
                             *found, wanted));
  }

  GuardResult Divisible(const std::vector<Term>& a) const {
    const auto dims = Dims(a[0]);
    if (!dims) return {Verdict::kUnknown, {}};
    const auto index = DimIndex(a[1], dims->size());
    const auto by = ParseInt(a[2].text);
    if (!index || !by || *by <= 0) return {Verdict::kUnknown, {}};
    const auto value = EvaluateDim((*dims)[*index], {});
    if (!value) return {Verdict::kUnknown, {}};
    if (*value % *by == 0) return {};
    return Fails(Miss::kShape, Value(a[0]),
                 fmt::format("dimension {} of {} is {}, no multiple of {}",
                             a[1].text, NameOf(a[0]), *value, *by));
  }

  GuardResult GrowsOnly(const std::vector<Term>& a) const {
    const auto before = Dims(a[0]);
    const auto after = Dims(a[1]);
    if (!before || !after) return {Verdict::kUnknown, {}};
    const auto index = DimIndex(a[2], before->size());
    bool equal = index && before->size() == after->size();
    for (size_t i = 0; equal && i < before->size(); ++i)
      equal = i == *index || (*before)[i] == (*after)[i];
    if (equal) return {};
    return Fails(Miss::kShape, Value(a[1]),
                 fmt::format("more than dimension {} differs between {} and {}",
                             a[2].text, NameOf(a[0]), NameOf(a[1])));
  }

  GuardResult AllUsers(const std::vector<Term>& a) const {
    const uint32_t slot = pattern_.Find(a[0].text);
    const NodeId value = Value(a[0]);
    for (const NodeId user : UsersOrLinears(graph_, value)) {
      if (match_.Holds(user)) continue;
      bool fits = false;
      for (uint32_t i = 0; i < pattern_.lines.size() && !fits; ++i)
        fits = HasForm(graph_, pattern_, i, user, slot, value);
      if (fits) continue;
      const std::string_view name = graph_[user].name;
      GuardResult out =
          Fails(Miss::kExtraUser, value,
                "also used by " + (name.empty() ? std::string("the output")
                                                : "%" + EscapeTerminal(name)));
      out.deviation.other = user;
      return out;
    }
    return {};
  }

  GuardResult FirstUser(const std::vector<Term>& a) const {
    const NodeId value = Value(a[0]);
    const NodeId first = Value(a[1]);
    for (NodeId id = graph_.Previous(first); id.valid() && id != value;
         id = graph_.Previous(id)) {
      const std::vector<NodeId> inputs = graph_.Inputs(id);
      if (match_.Holds(id) ||
          std::find(inputs.begin(), inputs.end(), value) == inputs.end())
        continue;
      if (graph_.op(id) == graph_.op(first)) continue;
      GuardResult out = Fails(Miss::kExtraUser, value,
                              "used before " + NameOf(a[1]) + " by %" +
                                  EscapeTerminal(graph_[id].name));
      out.deviation.other = id;
      return out;
    }
    return {};
  }

  GuardResult Option(const std::vector<Term>& a) const {
    const std::string wanted = option_ ? option_(a[1].text) : std::string();
    if (wanted.empty()) return {Verdict::kUnknown, {}};
    const Binding& found = Bound(a[0]);
    if (!found.bound) return {Verdict::kUnknown, {}};
    if (found.text == wanted) return {};
    return Fails(Miss::kStrategy,
                 found.operand.valid() ? graph_.operand(found.operand).owner()
                                       : match_.anchor(),
                 fmt::format("{} is {}, configured {}", a[1].text,
                             EscapeTerminal(found.text), wanted));
  }

  const Graph& graph_;
  const Pattern& pattern_;
  const Match& match_;
  const OptionOf& option_;
};

}  // namespace

std::string_view Name(Guard::Visible visible) {
  switch (visible) {
    case Guard::Visible::kDump:
      return "dump";
    case Guard::Visible::kValue:
      return "value";
    case Guard::Visible::kKeyword:
      return "kwarg";
    case Guard::Visible::kConfig:
      return "config";
  }
  return {};
}

GuardResult Check(const Guard& guard, const Graph& graph,
                  const Pattern& pattern, const Match& match,
                  const OptionOf& option) {
  if (guard.check.empty()) {
    return {guard.visible == Guard::Visible::kDump ? Verdict::kHolds
                                                   : Verdict::kUnknown,
            {}};
  }
  const Term& call = guard.check[0];
  // An alternative may lack a name that another one has.
  for (const Term& term : call.items) {
    if (term.kind == Kind::kText) continue;
    const uint32_t slot = pattern.Find(term.text);
    if (slot == kNoSlot) return {};
    const Binding& binding = match.slots[slot];
    const bool value = term.kind == Kind::kValue || term.kind == Kind::kWeight;
    if (!binding.bound || (value && !binding.node.valid()))
      return {Verdict::kUnknown, {}};
  }
  return Checker(graph, pattern, match, option).Run(call);
}

Parsed<void> ValidateCheck(const Term& check, const Pattern& pattern) {
  const auto wrong = [](TextPlace place, std::string what) {
    return tl::make_unexpected(SyntaxError{place, std::move(what)});
  };
  const auto* const form =
      std::find_if(std::begin(kChecks), std::end(kChecks),
                   [&](const CheckForm& f) { return f.name == check.text; });
  if (form == std::end(kChecks)) {
    std::string names;
    for (const CheckForm& f : kChecks)
      names += (names.empty() ? "" : ", ") + std::string(f.name);
    return wrong(check.place, "unknown check '" + EscapeTerminal(check.text) +
                                  "'; known are " + names);
  }
  std::string_view wanted = form->arguments;
  const bool repeats = wanted.back() == '*';
  if (repeats) wanted.remove_suffix(1);
  if (check.items.size() < wanted.size() ||
      (!repeats && check.items.size() > wanted.size())) {
    return wrong(check.place,
                 fmt::format("{} takes {}{} arguments", form->name,
                             repeats ? "at least " : "", wanted.size()));
  }
  for (size_t i = 0; i < check.items.size(); ++i) {
    const Term& term = check.items[i];
    const char kind = wanted[std::min(i, wanted.size() - 1)];
    const bool value = term.kind == Kind::kValue || term.kind == Kind::kWeight;
    const bool fits = kind == 'v'   ? value
                      : kind == 'c' ? term.kind == Kind::kLiteral
                                    : term.kind == Kind::kText;
    if (!fits) {
      return wrong(term.place, kind == 'v'   ? "expected a value like %x"
                               : kind == 'c' ? "expected a literal like $c"
                                             : "expected text");
    }
    if (kind != 't' && pattern.Find(term.text) == kNoSlot) {
      return wrong(term.place,
                   "'" + EscapeTerminal(term.text) + "' is not in the pattern");
    }
  }
  return {};
}

namespace {

bool Is(const Graph& graph, NodeId id, std::string_view op) {
  return graph[id].kind == NodeKind::kOp && MatchesTarget(graph.op(id), op);
}

bool IsReshape(const Graph& graph, NodeId id) {
  return Is(graph, id, "aten.view") || Is(graph, id, "aten.reshape");
}

std::vector<std::string_view> Dims(const Graph& graph, NodeId id) {
  const ResultText result = SplitResult(graph[id].result);
  const auto dims = SplitShape(result.shape);
  return result.tuple || !dims ? std::vector<std::string_view>() : *dims;
}

// The literals inside of a container, or behind the first operand.
std::vector<std::string_view> Numbers(const Graph& graph, NodeId id) {
  std::vector<std::string_view> out;
  const auto operands = graph.Operands(id);
  for (size_t i = 1; i < operands.size(); ++i) {
    if (operands[i].kind == OperandKind::kLiteral)
      out.push_back(operands[i].text());
  }
  return out;
}

// The weight that a node is the transpose of, as an operand.
OperandId TransposedWeight(const Graph& graph, NodeId id) {
  const std::vector<OperandId> operands = graph.TopOperands(id);
  if (operands.empty() || !graph.operand(operands[0]).IsValue()) return {};
  const NodeId weight = graph.operand(operands[0]).value();
  if (graph[weight].kind != NodeKind::kWeight) return {};
  using Texts = std::vector<std::string_view>;
  const Texts numbers = Numbers(graph, id);
  bool fits = false;
  if (Is(graph, id, "aten.t")) {
    fits = operands.size() == 1;
  } else if (Is(graph, id, "aten.permute")) {
    fits = numbers == Texts{"1", "0"} || numbers == Texts{"-1", "-2"};
  } else if (Is(graph, id, "aten.transpose")) {
    fits = numbers == Texts{"0", "1"} || numbers == Texts{"1", "0"} ||
           numbers == Texts{"-2", "-1"} || numbers == Texts{"-1", "-2"};
    // Of more than two dimensions these are others.
    const auto dims = Dims(graph, weight);
    fits = fits && (dims.empty() || dims.size() == 2);
  }
  return fits ? operands[0] : OperandId();
}

std::optional<LinearForm> ProductOf(const Graph& graph, NodeId id) {
  const std::vector<OperandId> operands = graph.TopOperands(id);
  const auto value = [&](size_t i) {
    return graph.operand(operands[i]).IsValue();
  };
  if (Is(graph, id, "aten.linear")) {
    if (operands.size() < 2 || operands.size() > 3 || !value(0) || !value(1))
      return std::nullopt;
    return LinearForm{operands[0], operands[1],
                      operands.size() == 3 ? operands[2] : OperandId(),
                      NodeId(), NodeId()};
  }
  const bool bias = Is(graph, id, "aten.addmm");
  const size_t first = bias ? 1 : 0;
  if ((!bias && !Is(graph, id, "aten.mm")) || operands.size() != first + 2 ||
      !value(first) || !value(first + 1) || (bias && !value(0)))
    return std::nullopt;
  const OperandId weight =
      TransposedWeight(graph, graph.operand(operands[first + 1]).value());
  if (!weight.valid()) return std::nullopt;
  if (bias) {
    // What is added may be a residual: a bias is a row.
    const NodeId added = graph.operand(operands[0]).value();
    const size_t dims = Dims(graph, added).size();
    if (dims != 1 && (dims != 0 || graph[added].kind != NodeKind::kWeight))
      return std::nullopt;
  }
  return LinearForm{operands[first], weight, bias ? operands[0] : OperandId(),
                    NodeId(), NodeId()};
}

// A view of a product of flat rows, which the view in front of it made flat.
std::optional<LinearForm> UnflattenedOf(const Graph& graph, NodeId id) {
  const std::vector<OperandId> operands = graph.TopOperands(id);
  if (!IsReshape(graph, id) || operands.empty() ||
      !graph.operand(operands[0]).IsValue())
    return std::nullopt;
  const NodeId product = graph.operand(operands[0]).value();
  if (graph[product].kind != NodeKind::kOp || graph.UseCount(product) != 1)
    return std::nullopt;
  auto form = ProductOf(graph, product);
  if (!form) return std::nullopt;
  const NodeId flat = graph.operand(form->input).value();
  const std::vector<OperandId> before = graph.TopOperands(flat);
  if (!IsReshape(graph, flat) || before.empty() ||
      !graph.operand(before[0]).IsValue())
    return std::nullopt;
  const auto in = Dims(graph, graph.operand(before[0]).value());
  const auto rows = Dims(graph, flat);
  const auto out = Dims(graph, id);
  const auto columns = Dims(graph, product);
  if (rows.size() != 2 || columns.size() != 2 || in.size() < 3 ||
      in.size() != out.size() || in.back() != rows.back() ||
      out.back() != columns.back() ||
      !std::equal(in.begin(), in.end() - 1, out.begin()))
    return std::nullopt;
  form->input = before[0];
  form->product = product;
  form->flat = flat;
  return form;
}

}  // namespace

std::optional<LinearForm> LinearOf(const Graph& graph, NodeId id) {
  if (graph.dialect.empty() || graph[id].kind != NodeKind::kOp)
    return std::nullopt;
  if (auto form = UnflattenedOf(graph, id)) return form;
  auto form = ProductOf(graph, id);
  if (!form || graph.UseCount(id) != 1) return form;
  const std::vector<NodeId> users = graph.Users(id);
  return UnflattenedOf(graph, users[0]) ? std::nullopt : form;
}

std::vector<NodeId> UsersOrLinears(const Graph& graph, NodeId value) {
  if (graph.dialect.empty()) return graph.Users(value);
  std::vector<NodeId> out;
  for (const NodeId user : graph.Users(value)) {
    std::vector<NodeId> linears;
    bool all = IsReshape(graph, user);
    for (const NodeId product : graph.Users(user)) {
      if (!all) break;
      all = graph.UseCount(product) == 1;
      const NodeId view = all ? graph.Users(product)[0] : NodeId();
      const auto form = all ? LinearOf(graph, view) : std::nullopt;
      all = form && form->product == product &&
            graph.operand(form->input).value() == value;
      if (all) linears.push_back(view);
    }
    if (!all || linears.empty()) linears = {user};
    out.insert(out.end(), linears.begin(), linears.end());
  }
  return out;
}

namespace {

// A factor in a product.
std::string Factor(const std::string& dim) {
  const bool plain = dim.find_first_of(" +-/%") == std::string::npos ||
                     (dim.front() == '(' && dim.back() == ')');
  return plain ? dim : "(" + dim + ")";
}

}  // namespace

std::optional<std::vector<std::string>> DimsOf(std::string_view shape) {
  const auto dims = SplitShape(shape);
  if (!dims) return std::nullopt;
  return std::vector<std::string>(dims->begin(), dims->end());
}

std::string JoinedDims(const std::vector<std::string>& dims) {
  if (dims.empty()) return "scalar";
  std::string out;
  for (const std::string& dim : dims) out += (out.empty() ? "" : "x") + dim;
  return out;
}

std::optional<size_t> DimIndex(std::string_view text, size_t rank) {
  const auto index = ParseInt(text);
  if (!index) return std::nullopt;
  const int64_t at = *index < 0 ? *index + static_cast<int64_t>(rank) : *index;
  if (at < 0 || at >= static_cast<int64_t>(rank)) return std::nullopt;
  return static_cast<size_t>(at);
}

std::string ProductOfDims(const std::vector<std::string>& dims) {
  std::string out;
  for (const std::string& dim : dims) {
    if (dim == "1") continue;
    out += (out.empty() ? "" : "*") + Factor(dim);
  }
  if (out.empty()) return "1";
  if (const auto value = EvaluateDim(out, {})) return std::to_string(*value);
  return CanonicalDim(out);
}

std::string SumOfDims(const std::string& a, const std::string& b) {
  const std::string text = a + " + " + b;
  if (const auto value = EvaluateDim(text, {})) return std::to_string(*value);
  return "(" + text + ")";
}

}  // namespace lamina::graph
