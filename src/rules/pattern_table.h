// SPDX-License-Identifier: Apache-2.0
//
// An ordered table of name patterns: the first rule that matches wins, and a
// match can say which rule in which file said so.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "rules/document.h"

namespace lamina::rules {

struct PatternRule {
  std::string id;
  std::string match;  // RE2
  bool ignore_case = false;
  bool anchored = false;  // must match the whole text
  std::string value;      // what a match means: a family, a stage ...
  std::string part;
  std::string also;
  std::string strength;
  std::string why;
  std::vector<std::string> examples;
  std::vector<std::string> counter_examples;
  std::string file;
  uint32_t line = 0;
};

// Thread safe after Make().
class PatternTable {
 public:
  static constexpr int kNone = -1;

  PatternTable();
  ~PatternTable();
  PatternTable(PatternTable&&) noexcept;
  PatternTable& operator=(PatternTable&&) noexcept;

  // `places[i]` is where rule i stands, for messages about bad patterns.
  static Result<PatternTable> Make(std::vector<PatternRule> rules);

  // Position of the first rule that matches, kNone if none does. A mangled
  // C++ name (_Z...) that matches nothing is tried demangled.
  int Find(std::string_view name) const;
  // Find() for many names on several threads.
  std::vector<int> FindAll(std::span<const std::string_view> names,
                           int threads) const;

  const std::vector<PatternRule>& rules() const;
  const PatternRule& rule(int index) const {
    return rules()[static_cast<size_t>(index)];
  }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Reads a list of rules with the keys id, match, ignore_case, VALUE_KEY,
// part, also, strength, why, examples, not; checks that every pattern
// compiles.
Result<std::vector<PatternRule>> ReadPatternRules(const DataFile& file,
                                                  const Node& list,
                                                  std::string_view value_key);

// The rules of all files that have a list of this name, as one table.
Result<PatternTable> ReadPatternTable(
    const std::vector<std::shared_ptr<const DataFile>>& files,
    std::string_view list_key, std::string_view value_key);

// Checks the examples of every rule against the whole table; one sentence per
// violation. Used by tests and `lamina list rules --check`.
std::vector<std::string> CheckExamples(const PatternTable& table);

}  // namespace lamina::rules
