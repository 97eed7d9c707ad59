// SPDX-License-Identifier: Apache-2.0
//
// A pattern: a few lines of a dump with names that bind, read and ready for
// matching.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tl/expected.hpp"

namespace lamina::graph {

// The text of rules: lines like those of a dump, with names that bind.
//
//   %n = aten.mul|aten.div(%x, !w, $c, _, [%a, -1], ...)
//   %out = auto_deploy.op.default(%x, {k}, dim(%e, 2)) : transpose(%x, 1, 2)
//   %out = aten.foo(%x, ?bias)
//   %p = &aten.view.default(%pos, [-1]) : flat(%pos)
//
// Nothing here knows what a line means; pattern.h and template.h do.

// A place in a rule's text; both 1-based.
struct TextPlace {
  uint32_t line = 0;
  uint32_t column = 0;
};

struct SyntaxError {
  TextPlace place;
  std::string what;
};
template <class T>
using Parsed = tl::expected<T, SyntaxError>;

struct Term {
  enum class Kind : uint8_t {
    kValue,    // %x
    kWeight,   // !w
    kLiteral,  // $c
    kAny,      // _ or, with a name, ?x
    kRest,     // ...
    kText,     // 2, torch.float32, True, bnsd
    kList,     // [a, b]
    kTuple,    // (a, b)
    kCall,     // dim(%x, 2)
  };
  Kind kind = Kind::kText;
  std::string text;  // without sigil; name of a call
  std::vector<Term> items;
  TextPlace place;
};

// %result = [~]target|target(operands) [: annotation], or %result = %value.
struct Statement {
  std::string result;
  std::vector<std::string> targets;  // empty: an alias of operands[0]
  bool commutes = false;             // ~: operands 0 and 1 in either order
  bool shared = false;               // &: one for all with the same operands
  std::vector<Term> operands;
  std::vector<Term> annotation;  // none or one
  TextPlace place;
  TextPlace target_place;
};

// Reads lines; blank lines and lines that begin with # are passed over.
Parsed<std::vector<Statement>> ParseStatements(std::string_view text);
// Reads one call without a result: `rank(%x, 4)`.
Parsed<Term> ParseCall(std::string_view text);

// A pattern: a few lines of a dump with names that bind, ready for matching.
//
// The last line is the anchor. From there every other line is reached through
// a value: backwards, since a line already matched consumes its result, or
// forwards, since it consumes a value already bound. The order in which lines
// are reached is fixed when the pattern is compiled.

inline constexpr uint32_t kNoSlot = 0xffffffff;

// A name of a pattern.
struct Slot {
  enum class Kind : uint8_t {
    kResult,   // of a line
    kValue,    // any value or weight
    kWeight,   // a value without a definition
    kLiteral,  // a literal or a container, as text
    kAny,      // any operand
  };
  std::string name;
  Kind kind = Kind::kValue;
  // Results only: may be used outside of the match.
  bool output = false;
};

struct PatternTerm {
  Term::Kind kind = Term::Kind::kText;
  uint32_t slot = kNoSlot;
  std::string text;
  std::vector<PatternTerm> items;
};

struct PatternLine {
  uint32_t slot = kNoSlot;  // of the result
  std::vector<std::string> targets;
  bool commutes = false;
  bool rest = false;  // `...` behind the operands
  std::vector<PatternTerm> operands;
  // A conversion of the element type: may be missing or too much.
  bool cast = false;
  TextPlace place;
};

struct Pattern {
  struct Step {
    uint32_t line = 0;
    bool backward = true;
    uint32_t via = kNoSlot;  // the bound slot through which it is reached
  };
  std::vector<Slot> slots;
  std::vector<PatternLine> lines;
  std::vector<Step> plan;  // without the anchor

  const PatternLine& anchor() const { return lines.back(); }
  // Position of a name; kNoSlot if the pattern has none of it.
  uint32_t Find(std::string_view name) const;
};

// More than these is refused. Lines bound the depth of the search, names and
// targets the time to compile.
inline constexpr size_t kMaxPatternLines = 64;
inline constexpr size_t kMaxPatternNames = 1024;
inline constexpr size_t kMaxPatternTargets = 64;  // of one line

// `outputs` are the names whose values may be used outside of a match.
Parsed<Pattern> CompilePattern(std::span<const Statement> statements,
                               std::span<const std::string> outputs);

// Whether an op only converts the element type.
bool IsCast(std::string_view op);

}  // namespace lamina::graph
