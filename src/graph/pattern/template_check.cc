// SPDX-License-Identifier: Apache-2.0
//
// Whether the lines that replace a pattern can be written for it.
#include <algorithm>

#include "graph/pattern/rewrite.h"

namespace lamina::graph {
namespace {

using Kind = Term::Kind;

// What stands for what in a replacement: operands are written, annotations are
// worked out, and each has its own functions.
class TemplateCheck {
 public:
  explicit TemplateCheck(const Pattern& pattern) : pattern_(pattern) {}

  Parsed<void> Run(const std::vector<Statement>& after) {
    if (after.size() > kMaxPatternLines)
      return Wrong(after[kMaxPatternLines].place, "too many lines");
    for (const Statement& line : after) {
      if (auto done = CheckLine(line); !done) return done;
      made_.push_back(line.result);
    }
    const std::string& anchor = pattern_.slots[pattern_.anchor().slot].name;
    if (Made(anchor)) return {};
    return Wrong(after.empty() ? TextPlace{1, 1} : after.back().place,
                 "nothing replaces the output '" + anchor + "'");
  }

 private:
  // What an argument of a function may be.
  enum class Argument : uint8_t { kValue, kAnnotation, kText };
  struct Form {
    std::string_view name;
    size_t least;
    size_t most;
    bool operand;    // else an annotation
    Argument first;  // and what the others are:
    Argument rest;
  };
  static constexpr Form kForms[] = {
      {"dim", 2, 2, true, Argument::kValue, Argument::kText},
      {"dtype", 1, 1, true, Argument::kValue, Argument::kText},
      {"weight", 2, 2, true, Argument::kText, Argument::kAnnotation},
      {"transpose", 3, 3, false, Argument::kAnnotation, Argument::kText},
      {"flat", 1, 1, false, Argument::kAnnotation, Argument::kText},
      // The last one is a dimension.
      {"concat", 3, 64, false, Argument::kAnnotation, Argument::kAnnotation},
      {"unknown", 0, 0, false, Argument::kText, Argument::kText},
      {"cast", 2, 2, false, Argument::kAnnotation, Argument::kText},
  };

  static tl::unexpected<SyntaxError> Wrong(TextPlace place, std::string what) {
    return tl::make_unexpected(SyntaxError{place, std::move(what)});
  }
  bool Made(const std::string& name) const {
    return std::find(made_.begin(), made_.end(), name) != made_.end();
  }

  Parsed<void> CheckLine(const Statement& line) const {
    const bool alias = line.targets.empty();
    for (const Term& term : line.operands) {
      if (term.kind == Kind::kRest && !alias) continue;
      if (auto done = alias ? CheckValue(term) : CheckOperand(term); !done)
        return done;
    }
    for (const Term& term : line.annotation) {
      if (auto done = CheckAnnotation(term); !done) return done;
    }
    if (line.targets.size() > 1)
      return Wrong(line.target_place, "a replacement has one target");
    if (line.commutes) return Wrong(line.target_place, "'~' is for patterns");
    if (!alias) return {};
    const uint32_t slot = pattern_.Find(line.result);
    if (slot == kNoSlot || !pattern_.slots[slot].output) {
      return Wrong(line.place,
                   "'" + line.result + "' is not an output of the pattern");
    }
    if (line.operands[0].text == line.result)
      return Wrong(line.place, "'" + line.result + "' replaces itself");
    return {};
  }

  Parsed<void> CheckValue(const Term& term) const {
    if (term.kind != Kind::kValue && term.kind != Kind::kWeight)
      return Wrong(term.place, "expected a value like %x");
    if (Made(term.text)) return {};
    const uint32_t slot = pattern_.Find(term.text);
    if (slot == kNoSlot) return Unbound(term);
    const Slot::Kind kind = pattern_.slots[slot].kind;
    if (kind != Slot::Kind::kLiteral && kind != Slot::Kind::kAny) return {};
    return Wrong(term.place, "'" + term.text +
                                 "' is no value in the pattern: write it "
                                 "with the same sigil");
  }

  static Parsed<void> Unbound(const Term& term) {
    return Wrong(term.place, "'" + term.text +
                                 "' is bound neither by the pattern nor by "
                                 "a line above");
  }

  Parsed<void> CheckOperand(const Term& term) const {
    switch (term.kind) {
      case Kind::kValue:
      case Kind::kWeight:
        return CheckValue(term);
      case Kind::kAny:
      case Kind::kLiteral:
        return CheckCopied(term);
      case Kind::kList:
      case Kind::kTuple:
        for (const Term& item : term.items) {
          if (auto done = CheckOperand(item); !done) return done;
        }
        return {};
      case Kind::kCall:
        return CheckCall(term, true);
      case Kind::kRest:
        return Wrong(term.place, "'...' cannot stand inside a list");
      case Kind::kText:
        break;
    }
    return {};
  }

  // ?x and $x stand for an operand of the match, as it was written.
  Parsed<void> CheckCopied(const Term& term) const {
    if (term.text.empty())
      return Wrong(term.place, "give the operand a name: ?name");
    const uint32_t slot = pattern_.Find(term.text);
    if (slot == kNoSlot) return Unbound(term);
    const Slot::Kind kind = pattern_.slots[slot].kind;
    if (kind == Slot::Kind::kLiteral || kind == Slot::Kind::kAny) return {};
    return Wrong(term.place,
                 "'" + term.text + "' is a value: write %" + term.text);
  }

  Parsed<void> CheckAnnotation(const Term& term) const {
    switch (term.kind) {
      case Kind::kValue:
      case Kind::kWeight:
        return CheckValue(term);
      case Kind::kText:
        return {};
      case Kind::kTuple:
        for (const Term& item : term.items) {
          if (auto done = CheckAnnotation(item); !done) return done;
        }
        return {};
      case Kind::kCall:
        return CheckCall(term, false);
      default:
        return Wrong(term.place,
                     "expected a value, a shape and dtype, or a "
                     "function of them");
    }
  }

  Parsed<void> CheckCall(const Term& term, bool operand) const {
    const auto* const form =
        std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) {
          return f.name == term.text && f.operand == operand;
        });
    if (form == std::end(kForms)) {
      return Wrong(term.place, std::string("unknown function of ") +
                                   (operand ? "an operand" : "a result") +
                                   " '" + term.text + "'");
    }
    if (term.items.size() < form->least || term.items.size() > form->most)
      return Wrong(term.place, "wrong number of arguments");
    for (size_t i = 0; i < term.items.size(); ++i) {
      Argument wanted = i == 0 ? form->first : form->rest;
      if (form->name == "concat" && i + 1 == term.items.size())
        wanted = Argument::kText;
      if (auto done = CheckArgument(term.items[i], wanted); !done) return done;
    }
    return {};
  }

  Parsed<void> CheckArgument(const Term& term, Argument wanted) const {
    if (wanted == Argument::kValue) return CheckValue(term);
    if (wanted == Argument::kAnnotation) return CheckAnnotation(term);
    if (term.kind == Kind::kText) return {};
    return Wrong(term.place, "expected text");
  }

  const Pattern& pattern_;
  std::vector<std::string> made_;
};

}  // namespace

Parsed<void> ValidateTemplate(const std::vector<Statement>& after,
                              const Pattern& pattern) {
  return TemplateCheck(pattern).Run(after);
}

}  // namespace lamina::graph
