// SPDX-License-Identifier: Apache-2.0
//
// The text of rules: lines like those of a dump, with names that bind.
//
//   %n = aten.mul|aten.div(%x, !w, $c, _, [%a, -1], ...)
//   %out = auto_deploy.op.default(%x, {k}, dim(%e, 2)) : transpose(%x, 1, 2)
//   %out = aten.foo(%x, ?bias)
//   %p = &aten.view.default(%pos, [-1]) : flat(%pos)
//
// Nothing here knows what a line means; pattern.h and template.h do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tl/expected.hpp"

namespace lamina::graph {

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

}  // namespace lamina::graph
