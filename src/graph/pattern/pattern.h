// SPDX-License-Identifier: Apache-2.0
//
// A pattern: a few lines of a dump with names that bind, ready for matching.
//
// The last line is the anchor. From there every other line is reached through
// a value: backwards, since a line already matched consumes its result, or
// forwards, since it consumes a value already bound. The order in which lines
// are reached is fixed when the pattern is compiled.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/pattern/syntax.h"

namespace lamina::graph {

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
