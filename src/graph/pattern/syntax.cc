// SPDX-License-Identifier: Apache-2.0
#include "graph/pattern/syntax.h"

#include "base/escape.h"

namespace lamina::graph {
namespace {

constexpr int kMaxNesting = 16;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '{' ||
         c == '}' || c == ':';
}

class Cursor {
 public:
  Cursor(std::string_view text, uint32_t line) : text_(text), line_(line) {}

  TextPlace place() const { return {line_, static_cast<uint32_t>(at_ + 1)}; }
  tl::unexpected<SyntaxError> Wrong(std::string what) const {
    return tl::make_unexpected(SyntaxError{place(), std::move(what)});
  }
  tl::unexpected<SyntaxError> Expected(std::string_view what) const {
    std::string found = "the end of the line";
    if (at_ < text_.size())
      found = "'" + EscapeTerminal(text_.substr(at_, 12)) + "'";
    return Wrong("expected " + std::string(what) + ", found " + found);
  }
  void Space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool AtEnd() {
    Space();
    return at_ >= text_.size();
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(std::string_view token) {
    Space();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  // A run of name bytes; a ':' only inside {...}.
  std::string Name() {
    const size_t begin = at_;
    int braces = 0;
    while (at_ < text_.size() && IsNameByte(text_[at_])) {
      if (text_[at_] == '{') ++braces;
      if (text_[at_] == '}') --braces;
      if (text_[at_] == ':' && braces <= 0) break;
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }
  // Everything up to the end of an operand.
  std::string Text() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')' &&
           text_[at_] != ']' && text_[at_] != '(' && text_[at_] != '[')
      ++at_;
    size_t end = at_;
    while (end > begin && text_[end - 1] == ' ') --end;
    return std::string(text_.substr(begin, end - begin));
  }

 private:
  std::string_view text_;
  uint32_t line_;
  size_t at_ = 0;
};

Parsed<std::vector<Term>> ParseTerms(Cursor& in, std::string_view close,
                                     int depth);

Parsed<Term> ParseTerm(Cursor& in, int depth) {
  in.Space();
  Term term;
  term.place = in.place();
  if (depth > kMaxNesting) return in.Wrong("nested too deeply");
  const auto bracketed = [&](std::string_view close) -> Parsed<Term> {
    auto items = ParseTerms(in, close, depth + 1);
    if (!items) return tl::make_unexpected(std::move(items).error());
    term.items = std::move(*items);
    return std::move(term);
  };
  if (in.Take("...")) {
    term.kind = Term::Kind::kRest;
    return term;
  }
  for (const auto& [sigil, kind] :
       {std::pair{"%", Term::Kind::kValue}, std::pair{"!", Term::Kind::kWeight},
        std::pair{"$", Term::Kind::kLiteral},
        std::pair{"?", Term::Kind::kAny}}) {
    if (!in.Take(sigil)) continue;
    term.kind = kind;
    term.text = in.Name();
    if (term.text.empty()) return in.Expected("a name");
    return term;
  }
  if (in.Take("[")) {
    term.kind = Term::Kind::kList;
    return bracketed("]");
  }
  if (in.Take("(")) {
    term.kind = Term::Kind::kTuple;
    return bracketed(")");
  }
  term.text = in.Text();
  if (term.text.empty()) return in.Expected("an operand");
  if (in.Peek() == '(') {
    in.Take("(");
    term.kind = Term::Kind::kCall;
    return bracketed(")");
  }
  if (term.text == "_") {
    term.kind = Term::Kind::kAny;
    term.text.clear();
  }
  return term;
}

Parsed<std::vector<Term>> ParseTerms(Cursor& in, std::string_view close,
                                     int depth) {
  std::vector<Term> terms;
  if (in.Take(close)) return terms;
  for (;;) {
    auto term = ParseTerm(in, depth);
    if (!term) return tl::make_unexpected(std::move(term).error());
    terms.push_back(std::move(*term));
    if (in.Take(close)) return terms;
    if (!in.Take(","))
      return in.Expected("',' or '" + std::string(close) + "'");
  }
}

Parsed<Statement> ParseStatement(std::string_view line, uint32_t number) {
  Cursor in(line, number);
  Statement out;
  in.Space();
  out.place = in.place();
  if (!in.Take("%")) return in.Expected("'%name = target(...)'");
  out.result = in.Name();
  if (out.result.empty()) return in.Expected("a name");
  if (!in.Take("=")) return in.Expected("'='");
  in.Space();
  out.target_place = in.place();
  if (in.Peek() == '%') {
    auto value = ParseTerm(in, 0);
    if (!value) return tl::make_unexpected(std::move(value).error());
    out.operands.push_back(std::move(*value));
  } else {
    out.commutes = in.Take("~");
    out.shared = in.Take("&");
    do {
      in.Space();
      std::string target = in.Name();
      if (target.empty()) return in.Expected("a target");
      out.targets.push_back(std::move(target));
    } while (in.Take("|"));
    if (!in.Take("(")) return in.Expected("'('");
    auto operands = ParseTerms(in, ")", 0);
    if (!operands) return tl::make_unexpected(std::move(operands).error());
    out.operands = std::move(*operands);
  }
  if (in.Take(":")) {
    auto annotation = ParseTerm(in, 0);
    if (!annotation) return tl::make_unexpected(std::move(annotation).error());
    out.annotation.push_back(std::move(*annotation));
  }
  if (!in.AtEnd()) return in.Expected("the end of the line");
  return out;
}

}  // namespace

Parsed<std::vector<Statement>> ParseStatements(std::string_view text) {
  std::vector<Statement> out;
  for (uint32_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#') {
      auto statement = ParseStatement(line, number);
      if (!statement) return tl::make_unexpected(std::move(statement).error());
      out.push_back(std::move(*statement));
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return out;
}

Parsed<Term> ParseCall(std::string_view text) {
  Cursor in(text, 1);
  auto term = ParseTerm(in, 0);
  if (!term) return term;
  if (term->kind != Term::Kind::kCall) {
    return tl::make_unexpected(
        SyntaxError{term->place, "expected a check like rank(%x, 4)"});
  }
  if (!in.AtEnd()) return in.Expected("the end of the check");
  return term;
}

}  // namespace lamina::graph
