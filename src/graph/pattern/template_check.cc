// SPDX-License-Identifier: Apache-2.0
//
// Whether the lines that replace a pattern can be written for it.
#include <algorithm>

#include "graph/pattern/rewrite.h"

namespace lamina::graph {
namespace {

using Kind = Term::Kind;

class TemplateCheck {
 public:
  explicit TemplateCheck(const Pattern& pattern) : pattern_(pattern) {}

  Parsed<void> Run(const std::vector<Statement>& after) {
    for (const Statement& line : after) {
      for (const Term& term : line.operands) {
        if (auto done = Check(term); !done) return done;
      }
      for (const Term& term : line.annotation) {
        if (auto done = Check(term); !done) return done;
      }
      if (line.targets.size() > 1)
        return Wrong(line.target_place, "a replacement has one target");
      if (line.commutes) return Wrong(line.target_place, "'~' is for patterns");
      const uint32_t slot = pattern_.Find(line.result);
      if (line.targets.empty() &&
          (slot == kNoSlot || !pattern_.slots[slot].output)) {
        return Wrong(line.place,
                     "'" + line.result + "' is not an output of the pattern");
      }
      made_.push_back(line.result);
    }
    const std::string& anchor = pattern_.slots[pattern_.anchor().slot].name;
    if (Made(anchor)) return {};
    return Wrong(after.empty() ? TextPlace{1, 1} : after.back().place,
                 "nothing replaces the output '" + anchor + "'");
  }

 private:
  static tl::unexpected<SyntaxError> Wrong(TextPlace place, std::string what) {
    return tl::make_unexpected(SyntaxError{place, std::move(what)});
  }
  bool Made(const std::string& name) const {
    return std::find(made_.begin(), made_.end(), name) != made_.end();
  }

  Parsed<void> Check(const Term& term) const {
    const bool name = term.kind == Kind::kValue || term.kind == Kind::kWeight ||
                      term.kind == Kind::kLiteral || term.kind == Kind::kAny;
    if (term.kind == Kind::kAny && term.text.empty())
      return Wrong(term.place, "give the operand a name: ?name");
    if (name && !Made(term.text) && pattern_.Find(term.text) == kNoSlot) {
      return Wrong(term.place, "'" + term.text +
                                   "' is bound neither by the pattern nor by "
                                   "a line above");
    }
    if (term.kind == Kind::kCall) {
      struct Form {
        std::string_view name;
        size_t least;
        size_t most;
      };
      constexpr Form kForms[] = {
          {"dim", 2, 2},       {"dtype", 1, 1}, {"weight", 2, 2},
          {"transpose", 3, 3}, {"flat", 1, 1},  {"concat", 3, 64},
          {"unknown", 0, 0},   {"cast", 2, 2},
      };
      const auto* const form =
          std::find_if(std::begin(kForms), std::end(kForms),
                       [&](const Form& f) { return f.name == term.text; });
      if (form == std::end(kForms))
        return Wrong(term.place, "unknown function '" + term.text + "'");
      if (term.items.size() < form->least || term.items.size() > form->most)
        return Wrong(term.place, "wrong number of arguments");
    }
    for (const Term& item : term.items) {
      if (auto done = Check(item); !done) return done;
    }
    return {};
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
