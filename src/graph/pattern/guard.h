// SPDX-License-Identifier: Apache-2.0
//
// Conditions of a rule beyond its pattern: checks on shapes, dtypes and users
// that a dump can answer, and conditions that it cannot show.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/pattern/match.h"
#include "graph/pattern/pattern.h"

namespace lamina::graph {

struct Guard {
  enum class Visible : uint8_t {
    kDump,
    kValue,    // values of weights or scales
    kKeyword,  // hidden in a keyword that the dump drops
    kConfig,   // an option of the transform
  };
  std::string id;
  std::string text;
  Visible visible = Visible::kDump;
  // A call like rank(%x, 4). Without one, a visible guard is what the pattern
  // itself says, and a hidden one cannot be checked.
  std::vector<Term> check;
};
std::string_view Name(Guard::Visible visible);

// Value of an option of the pass, or nothing.
using OptionOf = std::function<std::string(std::string_view)>;

struct GuardResult {
  enum class Verdict : uint8_t { kHolds, kUnknown, kFails };
  Verdict verdict = Verdict::kHolds;
  Deviation deviation;  // for kFails
};

// Checks a guard against a match.
//
//   rank(%x, N)               number of dimensions
//   dtype(%x, a, b, ...)      one of these
//   same_dtype(%a, %b)        equal element types
//   shape(%x, 1536x7168)      exactly this
//   same_shape(%a, %b)        equal up to the order of factors
//   divisible(%x, D, N)       dimension D is a multiple of N
//   grows_only(%a, %b, D)     shapes equal except for dimension D
//   all_users(%x)             every user of x matches a line of the pattern
//                             that consumes x
//   first_user(%x, %y)        no user of x stands in front of y
//   option($c, name)          the literal equals an option of the pass
GuardResult Check(const Guard& guard, const Graph& graph,
                  const Pattern& pattern, const Match& match,
                  const OptionOf& option);

// Whether the call is one of the above with names that the pattern has.
Parsed<void> ValidateCheck(const Term& check, const Pattern& pattern);

}  // namespace lamina::graph
