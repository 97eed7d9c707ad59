// SPDX-License-Identifier: Apache-2.0

#include "graph/pattern/pattern.h"

#include <algorithm>

#include "base/escape.h"
#include "graph/types.h"

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

namespace {

class Compiler {
 public:
  Parsed<Pattern> Run(std::span<const Statement> statements,
                      std::span<const std::string> outputs) {
    if (statements.empty()) return Wrong({1, 1}, "a pattern needs a line");
    if (statements.size() > kMaxPatternLines)
      return Wrong(statements[kMaxPatternLines].place, "too many lines");
    for (const Statement& statement : statements) {
      if (auto done = AddLine(statement); !done)
        return tl::make_unexpected(std::move(done).error());
    }
    for (const std::string& output : outputs) {
      const uint32_t slot = out_.Find(output);
      if (slot == kNoSlot || out_.slots[slot].kind != Slot::Kind::kResult) {
        return Wrong(statements.back().place,
                     "output '" + output + "' is not the result of a line");
      }
      out_.slots[slot].output = true;
    }
    if (!out_.slots[out_.anchor().slot].output) {
      return Wrong(statements.back().place,
                   "the last line must be one of the outputs");
    }
    if (auto done = MakePlan(); !done)
      return tl::make_unexpected(std::move(done).error());
    return std::move(out_);
  }

 private:
  static tl::unexpected<SyntaxError> Wrong(TextPlace place, std::string what) {
    return tl::make_unexpected(SyntaxError{place, std::move(what)});
  }

  Parsed<void> AddLine(const Statement& statement) {
    if (statement.targets.empty())
      return Wrong(statement.target_place, "a pattern has no aliases");
    if (!statement.annotation.empty())
      return Wrong(statement.annotation[0].place,
                   "a pattern has no annotations");
    if (statement.targets.size() > kMaxPatternTargets)
      return Wrong(statement.target_place, "too many targets");
    PatternLine line;
    line.place = statement.place;
    line.targets = statement.targets;
    line.commutes = statement.commutes;
    line.cast = std::all_of(line.targets.begin(), line.targets.end(), IsCast);
    for (size_t i = 0; i < statement.operands.size(); ++i) {
      const Term& term = statement.operands[i];
      if (term.kind == Term::Kind::kRest) {
        if (i + 1 < statement.operands.size())
          return Wrong(term.place, "'...' must be the last operand");
        line.rest = true;
        break;
      }
      auto operand = Convert(term);
      if (!operand) return tl::make_unexpected(std::move(operand).error());
      if (out_.slots.size() > kMaxPatternNames)
        return Wrong(term.place, "too many names");
      line.operands.push_back(std::move(*operand));
    }
    if (line.commutes && line.operands.size() < 2)
      return Wrong(statement.target_place, "'~' needs two operands");
    if (out_.Find(statement.result) != kNoSlot) {
      return Wrong(statement.place,
                   "'" + statement.result + "' is used or defined before this");
    }
    line.slot = static_cast<uint32_t>(out_.slots.size());
    out_.slots.push_back({statement.result, Slot::Kind::kResult, false});
    out_.lines.push_back(std::move(line));
    return {};
  }

  Parsed<PatternTerm> Convert(const Term& term) {
    PatternTerm out;
    out.kind = term.kind;
    switch (term.kind) {
      case Term::Kind::kValue:
        out.slot = Use(term.text, Slot::Kind::kValue);
        break;
      case Term::Kind::kWeight:
        out.slot = Use(term.text, Slot::Kind::kWeight);
        break;
      case Term::Kind::kLiteral:
        out.slot = Use(term.text, Slot::Kind::kLiteral);
        break;
      case Term::Kind::kAny:
        if (!term.text.empty()) out.slot = Use(term.text, Slot::Kind::kAny);
        break;
      case Term::Kind::kRest:
        break;
      case Term::Kind::kText:
        out.text = term.text;
        break;
      case Term::Kind::kList:
      case Term::Kind::kTuple:
        for (const Term& item : term.items) {
          if (item.kind == Term::Kind::kRest) {
            return Wrong(item.place, "'...' cannot stand inside a list");
          }
          auto inner = Convert(item);
          if (!inner) return inner;
          out.items.push_back(std::move(*inner));
        }
        break;
      case Term::Kind::kCall:
        return Wrong(term.place, "a pattern has no calls");
    }
    const bool value = term.kind == Term::Kind::kValue;
    if (out.slot != kNoSlot) {
      const Slot::Kind kind = out_.slots[out.slot].kind;
      const bool fits =
          (term.kind == Term::Kind::kLiteral) ==
              (kind == Slot::Kind::kLiteral) &&
          (term.kind == Term::Kind::kAny) == (kind == Slot::Kind::kAny);
      if (!fits || (kind == Slot::Kind::kWeight && value)) {
        return Wrong(term.place, "'" + term.text +
                                     "' was something else before: write it "
                                     "with the same sigil");
      }
    }
    return out;
  }

  uint32_t Use(const std::string& name, Slot::Kind kind) {
    const uint32_t found = out_.Find(name);
    if (found != kNoSlot) return found;
    out_.slots.push_back({name, kind, false});
    return static_cast<uint32_t>(out_.slots.size() - 1);
  }

  static void ValueSlots(const std::vector<PatternTerm>& terms,
                         std::vector<uint32_t>& out) {
    for (const PatternTerm& term : terms) {
      if (term.kind == Term::Kind::kValue || term.kind == Term::Kind::kWeight)
        out.push_back(term.slot);
      ValueSlots(term.items, out);
    }
  }

  Parsed<void> MakePlan() {
    const size_t count = out_.lines.size();
    std::vector<bool> bound(out_.slots.size());
    std::vector<bool> done(count);
    std::vector<uint32_t> used;
    const auto take = [&](uint32_t line) {
      done[line] = true;
      used.clear();
      ValueSlots(out_.lines[line].operands, used);
      for (const uint32_t slot : used) bound[slot] = true;
      bound[out_.lines[line].slot] = true;
    };
    take(static_cast<uint32_t>(count - 1));
    for (size_t left = count - 1; left > 0; --left) {
      std::optional<Pattern::Step> best;
      // Backwards first: there is one candidate.
      for (uint32_t i = static_cast<uint32_t>(count); i-- > 0 && !best;) {
        if (!done[i] && bound[out_.lines[i].slot])
          best = Pattern::Step{i, true, out_.lines[i].slot};
      }
      for (uint32_t i = static_cast<uint32_t>(count); i-- > 0 && !best;) {
        if (done[i]) continue;
        used.clear();
        ValueSlots(out_.lines[i].operands, used);
        for (const uint32_t slot : used) {
          if (bound[slot]) best = Pattern::Step{i, false, slot};
        }
      }
      if (!best) {
        for (const PatternLine& line : out_.lines) {
          if (!done[static_cast<size_t>(&line - out_.lines.data())]) {
            return Wrong(line.place,
                         "unreachable line: no value connects it with the "
                         "last line");
          }
        }
      }
      take(best->line);
      out_.plan.push_back(*best);
    }
    return {};
  }

  Pattern out_;
};

}  // namespace

uint32_t Pattern::Find(std::string_view name) const {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name == name) return static_cast<uint32_t>(i);
  }
  return kNoSlot;
}

Parsed<Pattern> CompilePattern(std::span<const Statement> statements,
                               std::span<const std::string> outputs) {
  return Compiler().Run(statements, outputs);
}

bool IsCast(std::string_view op) {
  return MatchesTarget(op, "aten.to") || MatchesTarget(op, "aten._to_copy");
}

}  // namespace lamina::graph
