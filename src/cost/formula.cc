// SPDX-License-Identifier: Apache-2.0

#include "cost/formula.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "rules/document.h"

namespace lamina::cost {

namespace {

// A position in a list; negative ones count from its end.
std::optional<size_t> Position(const Value& index, size_t size, bool end) {
  if (!index.is_number()) return std::nullopt;
  const double at = index.number() < 0
                        ? index.number() + static_cast<double>(size)
                        : index.number();
  const double limit = static_cast<double>(size) - (end ? 0 : 1);
  if (end) return static_cast<size_t>(std::clamp(at, 0.0, limit));
  if (!(at >= 0 && at <= limit) || at != std::floor(at)) return std::nullopt;
  return static_cast<size_t>(at);
}

}  // namespace

Value Formula::Evaluate(const Scope& scope) const { return Run(root_, scope); }

Value Formula::Run(uint32_t index, const Scope& scope) const {
  const Node& node = nodes_[index];
  const auto child = [&](size_t i) { return Run(node.children[i], scope); };
  switch (node.op) {
    case Op::kNumber:
      return node.number;
    case Op::kVariable:
      return scope.variables[node.index];
    case Op::kList: {
      std::vector<double> list;
      for (size_t i = 0; i < node.children.size(); ++i) {
        const Value item = child(i);
        if (!item.is_number()) return {};
        list.push_back(item.number());
      }
      return Value(std::move(list));
    }
    case Op::kIndex: {
      const Value list = child(0);
      if (!list.is_list()) return {};
      const auto at = Position(child(1), list.list().size(), false);
      return at ? Value(list.list()[*at]) : Value();
    }
    case Op::kSlice: {
      const Value list = child(0);
      if (!list.is_list()) return {};
      const size_t size = list.list().size();
      size_t from = 0;
      size_t to = size;
      if (node.children[1] != kNone) {
        const auto at = Position(child(1), size, true);
        if (!at) return {};
        from = *at;
      }
      if (node.children[2] != kNone) {
        const auto at = Position(child(2), size, true);
        if (!at) return {};
        to = *at;
      }
      const auto begin = list.list().begin();
      if (from >= to) return Value(std::vector<double>());
      return Value(std::vector<double>(begin + static_cast<ptrdiff_t>(from),
                                       begin + static_cast<ptrdiff_t>(to)));
    }
    case Op::kCall: {
      const Function& function = Functions()[node.index];
      if (function.name == "if") {
        const Value condition = child(0);
        if (!condition.is_number()) return {};
        return child(condition.number() != 0 ? 1 : 2);
      }
      if (function.name == "first") {
        for (size_t i = 0; i < node.children.size(); ++i) {
          Value value = child(i);
          if (value.known()) return value;
        }
        return {};
      }
      std::vector<Value> arguments;
      for (size_t i = 0; i < node.children.size(); ++i)
        arguments.push_back(child(i));
      return function.run(scope, arguments, node.text);
    }
    case Op::kNegate:
    case Op::kNot: {
      const Value value = child(0);
      if (!value.is_number()) return {};
      return node.op == Op::kNot ? Value(value.number() == 0 ? 1.0 : 0.0)
                                 : Value(-value.number());
    }
    default:
      break;
  }
  const Value left = child(0);
  if (!left.is_number()) return {};
  // Known without its right side.
  if (node.op == Op::kAnd && left.number() == 0) return 0.0;
  if (node.op == Op::kOr && left.number() != 0) return 1.0;
  const Value right = child(1);
  if (!right.is_number()) return {};
  const double a = left.number();
  const double b = right.number();
  switch (node.op) {
    case Op::kAdd:
      return a + b;
    case Op::kSubtract:
      return a - b;
    case Op::kMultiply:
      return a * b;
    case Op::kDivide:
      return b == 0 ? Value() : Value(a / b);
    case Op::kModulo:
      return b == 0 ? Value() : Value(std::fmod(a, b));
    case Op::kAnd:
    case Op::kOr:
      return b != 0 ? 1.0 : 0.0;
    case Op::kEqual:
      return a == b ? 1.0 : 0.0;
    case Op::kUnequal:
      return a != b ? 1.0 : 0.0;
    case Op::kLess:
      return a < b ? 1.0 : 0.0;
    default:
      return a <= b ? 1.0 : 0.0;
  }
}

// The text of a formula to its nodes; formula.cc gives their value.

namespace {

// Deeper nesting than any formula needs; bounds the recursion.
constexpr int kMaxDepth = 64;
// Chains such as 1 + 1 + 1 nest without parentheses, as deep as they are long.
constexpr size_t kMaxLength = 4096;

bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace

// Recursive descent, one function per level of precedence.
class Parser {
 public:
  using Op = Formula::Op;

  Parser(std::string_view text, const std::vector<std::string>& names,
         Formula& formula)
      : text_(text), names_(names), formula_(formula) {}

  bool Run() {
    uint32_t root = 0;
    if (!Or(root)) return false;
    SkipSpace();
    if (pos_ != text_.size()) return Fail("expected an operator");
    formula_.root_ = root;
    return true;
  }
  const Formula::SyntaxError& error() const { return error_; }

 private:
  bool Fail(std::string what, std::string hint = {}) {
    if (error_.what.empty()) error_ = {pos_, std::move(what), std::move(hint)};
    return false;
  }
  void SkipSpace() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n'))
      ++pos_;
  }
  bool Take(std::string_view symbol) {
    SkipSpace();
    if (!text_.substr(pos_).starts_with(symbol)) return false;
    const size_t end = pos_ + symbol.size();
    if (IsNameStart(symbol[0]) && end < text_.size() &&
        (IsNameStart(text_[end]) || IsDigit(text_[end])))
      return false;
    pos_ = end;
    return true;
  }
  uint32_t Add(Op op, std::vector<uint32_t> children) {
    Formula::Node node;
    node.op = op;
    node.children = std::move(children);
    formula_.nodes_.push_back(std::move(node));
    return static_cast<uint32_t>(formula_.nodes_.size() - 1);
  }

  bool Or(uint32_t& out) {
    if (!And(out)) return false;
    while (Take("or")) {
      uint32_t right = 0;
      if (!And(right)) return false;
      out = Add(Op::kOr, {out, right});
    }
    return true;
  }
  bool And(uint32_t& out) {
    if (!Not(out)) return false;
    while (Take("and")) {
      uint32_t right = 0;
      if (!Not(right)) return false;
      out = Add(Op::kAnd, {out, right});
    }
    return true;
  }
  bool Not(uint32_t& out) {
    if (++depth_ > kMaxDepth) return Fail("the formula nests too deep");
    bool ok = false;
    if (Take("not")) {
      ok = Not(out);
      if (ok) out = Add(Op::kNot, {out});
    } else {
      ok = Comparison(out);
    }
    --depth_;
    return ok;
  }
  bool Comparison(uint32_t& out) {
    if (!Sum(out)) return false;
    struct Symbol {
      std::string_view text;
      Op op;
      bool swapped;
    };
    for (const Symbol& s :
         {Symbol{"==", Op::kEqual, false}, Symbol{"!=", Op::kUnequal, false},
          Symbol{"<=", Op::kLessEqual, false},
          Symbol{">=", Op::kLessEqual, true}, Symbol{"<", Op::kLess, false},
          Symbol{">", Op::kLess, true}}) {
      if (!Take(s.text)) continue;
      uint32_t right = 0;
      if (!Sum(right)) return false;
      out = s.swapped ? Add(s.op, {right, out}) : Add(s.op, {out, right});
      return true;
    }
    return true;
  }
  bool Sum(uint32_t& out) {
    if (!Product(out)) return false;
    for (;;) {
      const bool plus = Take("+");
      if (!plus && !Take("-")) return true;
      uint32_t right = 0;
      if (!Product(right)) return false;
      out = Add(plus ? Op::kAdd : Op::kSubtract, {out, right});
    }
  }
  bool Product(uint32_t& out) {
    if (!Unary(out)) return false;
    for (;;) {
      Op op = Op::kMultiply;
      if (Take("*")) {
        op = Op::kMultiply;
      } else if (Take("/")) {
        op = Op::kDivide;
      } else if (Take("%")) {
        op = Op::kModulo;
      } else {
        return true;
      }
      uint32_t right = 0;
      if (!Unary(right)) return false;
      out = Add(op, {out, right});
    }
  }
  bool Unary(uint32_t& out) {
    if (Take("-")) {
      if (++depth_ > kMaxDepth) return Fail("the formula nests too deep");
      const bool ok = Unary(out);
      --depth_;
      if (ok) out = Add(Op::kNegate, {out});
      return ok;
    }
    return Postfix(out);
  }
  bool Postfix(uint32_t& out) {
    if (!Primary(out)) return false;
    while (Take("[")) {
      uint32_t from = Formula::kNone;
      if (!Take(":")) {
        if (!Or(from)) return false;
        if (Take("]")) {
          out = Add(Op::kIndex, {out, from});
          continue;
        }
        if (!Take(":")) return Fail("expected ']' or ':'");
      }
      uint32_t to = Formula::kNone;
      if (!Take("]")) {
        if (!Or(to)) return false;
        if (!Take("]")) return Fail("expected ']'");
      }
      out = Add(Op::kSlice, {out, from, to});
    }
    return true;
  }
  bool Primary(uint32_t& out) {
    SkipSpace();
    if (Take("(")) {
      if (!Or(out)) return false;
      return Take(")") || Fail("expected ')'");
    }
    if (Take("[")) {
      std::vector<uint32_t> items;
      if (!Take("]") && !Arguments(items, "]")) return false;
      out = Add(Op::kList, std::move(items));
      return true;
    }
    if (pos_ >= text_.size()) return Fail("the formula ends too early");
    const char c = text_[pos_];
    if (IsDigit(c) || c == '.') return Number(out);
    if (IsNameStart(c)) return Name(out);
    return Fail("expected a number, a name or '('");
  }
  bool Number(uint32_t& out) {
    const std::string rest(text_.substr(pos_));
    char* end = nullptr;
    const double value = std::strtod(rest.c_str(), &end);
    if (end == rest.c_str()) return Fail("expected a number");
    pos_ += static_cast<size_t>(end - rest.c_str());
    out = Add(Op::kNumber, {});
    formula_.nodes_[out].number = value;
    return true;
  }
  bool Name(uint32_t& out) {
    const size_t begin = pos_;
    size_t end = pos_;
    while (end < text_.size() &&
           (IsNameStart(text_[end]) || IsDigit(text_[end])))
      ++end;
    const std::string_view name = text_.substr(begin, end - begin);
    pos_ = end;
    if (Take("(")) return Call(name, begin, out);
    const auto it = std::find(names_.begin(), names_.end(), name);
    if (it == names_.end()) {
      std::vector<std::string_view> known(names_.begin(), names_.end());
      const std::string_view near = rules::Nearest(name, known);
      pos_ = begin;
      return Fail(
          "'" + std::string(name) + "' is not defined before this",
          near.empty() ? "" : "did you mean '" + std::string(near) + "'?");
    }
    out = Add(Op::kVariable, {});
    formula_.nodes_[out].index = static_cast<uint32_t>(it - names_.begin());
    return true;
  }
  bool Call(std::string_view name, size_t begin, uint32_t& out) {
    const auto& functions = Functions();
    const auto it =
        std::find_if(functions.begin(), functions.end(),
                     [&](const Function& f) { return f.name == name; });
    if (it == functions.end()) {
      std::vector<std::string_view> known;
      for (const Function& f : functions) known.push_back(f.name);
      const std::string_view near = rules::Nearest(name, known);
      pos_ = begin;
      return Fail(
          "there is no function '" + std::string(name) + "'",
          near.empty() ? "" : "did you mean '" + std::string(near) + "'?");
    }
    std::vector<uint32_t> arguments;
    std::string text;
    if (it->takes_text) {
      if (!Take("'")) return Fail("expected a text in single quotes");
      const size_t close = text_.find('\'', pos_);
      if (close == std::string_view::npos) return Fail("expected \"'\"");
      text = text_.substr(pos_, close - pos_);
      pos_ = close + 1;
      if (!Take(")")) return Fail("expected ')'");
    } else if (!Take(")") && !Arguments(arguments, ")")) {
      return false;
    }
    const int count = static_cast<int>(arguments.size());
    if (!it->takes_text &&
        (count < it->min_arguments || count > it->max_arguments)) {
      pos_ = begin;
      return Fail("'" + std::string(name) + "' takes " +
                  std::to_string(it->min_arguments) +
                  (it->max_arguments > it->min_arguments
                       ? " to " + std::to_string(it->max_arguments)
                       : std::string()) +
                  " arguments, not " + std::to_string(count));
    }
    out = Add(Op::kCall, std::move(arguments));
    formula_.nodes_[out].index = static_cast<uint32_t>(it - functions.begin());
    formula_.nodes_[out].text = std::move(text);
    return true;
  }
  bool Arguments(std::vector<uint32_t>& out, std::string_view close) {
    if (++depth_ > kMaxDepth) return Fail("the formula nests too deep");
    do {
      uint32_t argument = 0;
      if (!Or(argument)) return false;
      out.push_back(argument);
    } while (Take(","));
    --depth_;
    return Take(close) || Fail("expected ',' or '" + std::string(close) + "'");
  }

  std::string_view text_;
  const std::vector<std::string>& names_;
  Formula& formula_;
  size_t pos_ = 0;
  int depth_ = 0;
  Formula::SyntaxError error_;
};

tl::expected<Formula, Formula::SyntaxError> Formula::Compile(
    std::string_view text, const std::vector<std::string>& names) {
  if (text.size() > kMaxLength) {
    return tl::make_unexpected(SyntaxError{
        kMaxLength,
        "a formula has at most " + std::to_string(kMaxLength) + " characters",
        "name its parts under 'let'"});
  }
  Formula formula;
  Parser parser(text, names, formula);
  if (!parser.Run()) return tl::make_unexpected(parser.error());
  return formula;
}

}  // namespace lamina::cost
