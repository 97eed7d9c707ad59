// SPDX-License-Identifier: Apache-2.0

#include "graph/types.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "graph/line_parser.h"

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

namespace {

// Brackets balanced, no byte that no shape has.
bool IsShapeText(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (c == ')' && --depth < 0) return false;
    const bool known = IsLetter(c) || IsDigit(c) ||
                       std::string_view(" +-*/%(),?<>=!&|~.").find(c) !=
                           std::string_view::npos;
    if (!known) return false;
  }
  return depth == 0 && !text.empty() && text.front() != ' ' &&
         text.back() != ' ';
}

struct DTypeRow {
  std::string_view name;
  std::string_view brief;
  int64_t bytes;
};
constexpr DTypeRow kDTypes[] = {
    {"bool", "bool", 1},
    {"int8", "i8", 1},
    {"uint8", "u8", 1},
    {"int16", "i16", 2},
    {"uint16", "u16", 2},
    {"int32", "i32", 4},
    {"uint32", "u32", 4},
    {"int64", "i64", 8},
    {"uint64", "u64", 8},
    {"float8_e4m3fn", "fp8 e4m3", 1},
    {"float8_e4m3fnuz", "fp8 e4m3", 1},
    {"float8_e5m2", "fp8 e5m2", 1},
    {"float8_e5m2fnuz", "fp8 e5m2", 1},
    {"float8_e8m0fnu", "fp8 e8m0", 1},
    {"float4_e2m1fn_x2", "fp4 x2", 1},
    {"float16", "fp16", 2},
    {"bfloat16", "bf16", 2},
    {"float32", "fp32", 4},
    {"float64", "fp64", 8},
    {"complex64", "c64", 8},
    {"complex128", "c128", 16},
};

}  // namespace

bool IsShape(std::string_view text) { return IsShapeText(text); }

bool IsDType(std::string_view text) {
  if (text == "N/A" || text == "?") return true;
  return !text.empty() && IsLetter(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return IsLetter(c) || IsDigit(c) || c == '.';
         });
}

bool IsResult(std::string_view text) {
  const size_t colon = text.find(kColon);
  if (colon == std::string_view::npos) return false;
  const std::string_view shape = text.substr(0, colon);
  const std::string_view dtype = text.substr(colon + kColon.size());
  if (!IsShape(shape)) return shape == "()" && dtype == "()";
  if (IsDType(dtype)) return true;
  // "(a, b) : (c, d)"
  if (shape[0] != '(' || shape.back() != ')' || dtype.size() < 2 ||
      dtype[0] != '(' || dtype.back() != ')')
    return false;
  return std::all_of(dtype.begin(), dtype.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) ||
           std::string_view("().,/ ?").find(c) != std::string_view::npos;
  });
}

std::optional<std::vector<std::string_view>> SplitShape(
    std::string_view shape) {
  std::vector<std::string_view> dims;
  if (shape == "?") return std::nullopt;
  if (shape == "scalar") return dims;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    const char c = shape[i];
    if (c == '(') ++depth;
    if (c == ')') --depth;
    // Between complete dimensions only: behind a digit or a bracket, so not
    // inside a word like Max.
    if (c != 'x' || depth != 0 || i == start || i + 1 == shape.size()) continue;
    const char before = shape[i - 1];
    if (!IsDigit(before) && before != ')' && before != '?') continue;
    dims.push_back(shape.substr(start, i - start));
    start = i + 1;
  }
  dims.push_back(shape.substr(start));
  return dims;
}

std::optional<int64_t> Elements(std::string_view shape,
                                const Bindings& bindings) {
  const auto dims = SplitShape(shape);
  if (!dims) return std::nullopt;
  int64_t product = 1;
  for (const std::string_view dim : *dims) {
    const auto value = EvaluateDim(dim, bindings);
    if (!value || *value < 0 ||
        __builtin_mul_overflow(product, *value, &product))
      return std::nullopt;
  }
  return product;
}

std::string CanonicalShape(std::string_view shape) {
  const auto dims = SplitShape(shape);
  if (!dims || dims->empty()) return std::string(shape);
  std::string out;
  for (const std::string_view dim : *dims) {
    if (!out.empty()) out += 'x';
    out += CanonicalDim(dim);
  }
  return out;
}

std::vector<std::string_view> Symbols(std::string_view shape) {
  std::vector<std::string_view> out;
  if (shape == "?" || shape == "scalar") return out;
  const auto dims = SplitShape(shape);
  for (const std::string_view dim : *dims) AddSymbols(dim, out);
  return out;
}

std::optional<int64_t> DTypeBytes(std::string_view dtype) {
  if (dtype.starts_with("torch.")) dtype.remove_prefix(6);
  for (const DTypeRow& row : kDTypes) {
    if (dtype == row.name) return row.bytes;
  }
  return std::nullopt;
}

std::string_view ShortDType(std::string_view dtype) {
  if (dtype.starts_with("torch.")) dtype.remove_prefix(6);
  for (const DTypeRow& row : kDTypes) {
    if (dtype == row.name) return row.brief;
  }
  return dtype;
}

namespace {

constexpr std::string_view kFunction = "<function ";
constexpr std::string_view kBuiltin = "<built-in function ";
constexpr std::string_view kMethod = "<built-in method ";

}  // namespace

std::string_view QualifiedName(std::string_view target) {
  if (!target.starts_with(kFunction)) return {};
  target.remove_prefix(kFunction.size());
  const size_t at = target.rfind(" at 0x");
  if (at != std::string_view::npos) return target.substr(0, at);
  if (target.ends_with('>')) target.remove_suffix(1);
  return target;
}

std::string NormalizeTarget(std::string_view target) {
  if (!target.starts_with('<')) return std::string(target);
  if (target.starts_with(kFunction)) {
    std::string_view name = QualifiedName(target);
    // The last part: dots inside <...> separate nothing.
    int depth = 0;
    for (size_t i = name.size(); i-- > 0;) {
      if (name[i] == '>') ++depth;
      if (name[i] == '<') --depth;
      if (name[i] == '.' && depth == 0) {
        name.remove_prefix(i + 1);
        break;
      }
    }
    return "fn." + std::string(name);
  }
  for (const std::string_view prefix : {kBuiltin, kMethod}) {
    if (!target.starts_with(prefix)) continue;
    std::string_view name = target.substr(prefix.size());
    name = name.substr(0, name.find_first_of(" >"));
    return "builtin." + std::string(name);
  }
  return std::string(target);
}

bool MatchesTarget(std::string_view op, std::string_view pattern) {
  return op.starts_with(pattern) &&
         (op.size() == pattern.size() || op[pattern.size()] == '.');
}

}  // namespace lamina::graph
