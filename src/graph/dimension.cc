// SPDX-License-Identifier: Apache-2.0
#include "graph/dimension.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "graph/types.h"

namespace lamina::graph {
namespace {

// Numbers and operators of an expression.
struct Token {
  enum Kind : uint8_t { kNumber, kSymbol, kFunction, kOperator, kEnd };
  Kind kind = kEnd;
  std::string_view text;
};

class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}
  Token Next() {
    while (pos_ < text_.size() && text_[pos_] == ' ') ++pos_;
    if (pos_ >= text_.size()) return {};
    const size_t start = pos_;
    const char c = text_[pos_];
    if (IsDigit(c)) {
      while (pos_ < text_.size() && IsDigit(text_[pos_])) ++pos_;
      return {Token::kNumber, text_.substr(start, pos_ - start)};
    }
    if (IsLetter(c)) {
      while (pos_ < text_.size() &&
             (IsLetter(text_[pos_]) || IsDigit(text_[pos_])))
        ++pos_;
      const bool call = pos_ < text_.size() && text_[pos_] == '(';
      return {call ? Token::kFunction : Token::kSymbol,
              text_.substr(start, pos_ - start)};
    }
    pos_ += text_.substr(pos_).starts_with("//") ? 2 : 1;
    return {Token::kOperator, text_.substr(start, pos_ - start)};
  }

 private:
  std::string_view text_;
  size_t pos_ = 0;
};

int PrecedenceOf(std::string_view op) {
  if (op == "+" || op == "-") return 1;
  if (op == "*" || op == "//" || op == "%") return 2;
  if (op == "neg") return 3;
  return 0;
}

// Deeper dimensions stay text; nobody writes them.
constexpr size_t kMaxTokens = 4096;
constexpr size_t kMaxDepth = 64;

// Reads an infix expression and drives `machine`, which keeps a stack of
// operands: Number, Symbol, Binary, Negate, Call(name, count). False for text
// that is no expression.
template <class Machine>
bool Walk(std::string_view text, Machine& machine) {
  struct Entry {
    std::string_view op;  // operator, "(" or a function name
    bool function = false;
    uint32_t arguments = 1;
  };
  std::vector<Entry> stack;
  const auto reduce = [&](int precedence) {
    while (!stack.empty() && stack.back().op != "(" && !stack.back().function &&
           PrecedenceOf(stack.back().op) >= precedence) {
      if (stack.back().op == "neg") {
        machine.Negate();
      } else if (!machine.Binary(stack.back().op)) {
        return false;
      }
      stack.pop_back();
    }
    return true;
  };
  Tokens tokens(text);
  bool want_operand = true;
  for (size_t count = 0;; ++count) {
    if (count > kMaxTokens || stack.size() > kMaxDepth) return false;
    const Token token = tokens.Next();
    if (token.kind == Token::kEnd) break;
    if (want_operand) {
      if (token.kind == Token::kNumber) {
        machine.Number(token.text);
        want_operand = false;
      } else if (token.kind == Token::kSymbol) {
        machine.Symbol(token.text);
        want_operand = false;
      } else if (token.kind == Token::kFunction) {
        tokens.Next();  // the parenthesis
        stack.push_back({token.text, true});
      } else if (token.text == "(") {
        stack.push_back({"("});
      } else if (token.text == "-") {
        stack.push_back({"neg"});
      } else {
        return false;
      }
      continue;
    }
    if (token.kind != Token::kOperator) return false;
    if (token.text == ")" || token.text == ",") {
      if (!reduce(0) || stack.empty()) return false;
      Entry& open = stack.back();
      if (token.text == ",") {
        if (!open.function) return false;
        ++open.arguments;
        want_operand = true;
        continue;
      }
      if (open.function && !machine.Call(open.op, open.arguments)) return false;
      stack.pop_back();
      continue;
    }
    const int precedence = PrecedenceOf(token.text);
    if (precedence == 0 || !reduce(precedence)) return false;
    stack.push_back({token.text});
    want_operand = true;
  }
  return !want_operand && reduce(0) && stack.empty();
}

// Computes; any overflow or unbound symbol makes `good` false.
struct Evaluator {
  const Bindings& bindings;
  std::vector<int64_t> values;
  bool good = true;

  void Number(std::string_view text) {
    int64_t value = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value);
    good = good && error == std::errc();
    values.push_back(value);
  }
  void Symbol(std::string_view text) {
    const auto found = bindings.find(text);
    good = good && found != bindings.end();
    values.push_back(found == bindings.end() ? 0 : found->second);
  }
  void Negate() {
    good = good &&
           !__builtin_sub_overflow(int64_t{0}, values.back(), &values.back());
  }
  bool Binary(std::string_view op) {
    const int64_t b = values.back();
    values.pop_back();
    int64_t& a = values.back();
    if (op == "+") good = !__builtin_add_overflow(a, b, &a) && good;
    if (op == "-") good = !__builtin_sub_overflow(a, b, &a) && good;
    if (op == "*") good = !__builtin_mul_overflow(a, b, &a) && good;
    if (op == "//" || op == "%") Divide(a, b, op == "%");
    return true;
  }
  // Python: rounds to the lower integer, remainder of the sign of b.
  void Divide(int64_t& a, int64_t b, bool remainder) {
    if (b == 0 || (a == INT64_MIN && b == -1)) {
      good = false;
      return;
    }
    int64_t quotient = a / b;
    int64_t rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
      --quotient;
      rest += b;
    }
    a = remainder ? rest : quotient;
  }
  bool Call(std::string_view name, uint32_t count) {
    const auto first = values.end() - count;
    int64_t value = *first;
    if (name == "Max") {
      value = *std::max_element(first, values.end());
    } else if (name == "Min") {
      value = *std::min_element(first, values.end());
    } else if ((name == "Mod" || name == "FloorDiv") && count == 2) {
      Divide(value, values.back(), name == "Mod");
    } else {
      good = false;
    }
    values.resize(values.size() - count);
    values.push_back(value);
    return true;
  }
};

// Texts with the operands of + and * in order.
struct Canonicalizer {
  struct Item {
    char op = 0;  // '+', '*', or 0 for what is no sum or product
    std::vector<std::string> parts;
  };
  std::vector<Item> items;

  static std::string Join(Item& item) {
    std::sort(item.parts.begin(), item.parts.end());
    std::string out;
    for (const std::string& part : item.parts) {
      if (!out.empty()) out += item.op == '+' ? " + " : "*";
      out += part;
    }
    return out;
  }
  static std::string Factor(Item& item) {
    std::string text = Join(item);
    return item.op == '+' ||
                   (item.op == 0 && item.parts.size() == 1 &&
                    text.find(' ') != std::string::npos && text.back() != ')')
               ? "(" + text + ")"
               : text;
  }
  void Push(std::string text) {
    items.emplace_back();
    items.back().parts.push_back(std::move(text));
  }
  void Number(std::string_view text) { Push(std::string(text)); }
  void Symbol(std::string_view text) { Push(std::string(text)); }
  void Negate() {
    std::string text = "-" + Factor(items.back());
    items.pop_back();
    Push(std::move(text));
  }
  bool Binary(std::string_view op) {
    Item b = std::move(items.back());
    items.pop_back();
    Item a = std::move(items.back());
    items.pop_back();
    if (op == "-") {
      b = {0, {"-" + Factor(b)}};
      op = "+";
    }
    Item out;
    if (op == "+" || op == "*") {
      out.op = op[0];
      for (Item* side : {&a, &b}) {
        if (side->op == out.op) {
          std::move(side->parts.begin(), side->parts.end(),
                    std::back_inserter(out.parts));
        } else {
          out.parts.push_back(out.op == '*' ? Factor(*side) : Join(*side));
        }
      }
    } else {
      out.parts.push_back("(" + Factor(a) + std::string(op) + Factor(b) + ")");
    }
    items.push_back(std::move(out));
    return true;
  }
  bool Call(std::string_view name, uint32_t count) {
    std::vector<std::string> arguments;
    for (size_t i = items.size() - count; i < items.size(); ++i)
      arguments.push_back(Join(items[i]));
    items.resize(items.size() - count);
    if (name == "Max" || name == "Min")
      std::sort(arguments.begin(), arguments.end());
    std::string text(name);
    char separator = '(';
    for (const std::string& argument : arguments) {
      text += separator;
      if (separator == ',') text += ' ';
      text += argument;
      separator = ',';
    }
    Push(text + ")");
    return true;
  }
};

}  // namespace

std::optional<int64_t> EvaluateDim(std::string_view dim,
                                   const Bindings& bindings) {
  Evaluator evaluator{bindings, {}, true};
  if (!Walk(dim, evaluator) || !evaluator.good) return std::nullopt;
  return evaluator.values.back();
}

std::string CanonicalDim(std::string_view dim) {
  Canonicalizer canonicalizer;
  if (!Walk(dim, canonicalizer)) return std::string(dim);
  return Canonicalizer::Join(canonicalizer.items.back());
}

void AddSymbols(std::string_view dim, std::vector<std::string_view>& out) {
  Tokens tokens(dim);
  for (Token token = tokens.Next(); token.kind != Token::kEnd;
       token = tokens.Next()) {
    if (token.kind == Token::kSymbol) out.push_back(token.text);
  }
}

}  // namespace lamina::graph
