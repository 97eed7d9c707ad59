// SPDX-License-Identifier: Apache-2.0
//
// Holds every built-in rule against its own examples.
#include <gtest/gtest.h>

#include "graph/passes/rule_file.h"

namespace lamina::graph {
namespace {

TEST(Rules, BuiltInRulesHoldTheirExamples) {
  const auto set = LoadRuleSet(rules::DataSet());
  ASSERT_TRUE(set) << set.error().ToString();
  EXPECT_EQ(set->rules.size(), 62u);
  for (const std::string& warning : set->warnings) ADD_FAILURE() << warning;
  size_t with_pattern = 0;
  for (const Rule& rule : set->rules) {
    for (const std::string& violation : CheckRuleExamples(rule))
      ADD_FAILURE() << violation;
    if (rule.alternatives.empty()) continue;
    ++with_pattern;
    EXPECT_EQ(rule.examples.size(), rule.alternatives.size()) << rule.name;
    EXPECT_FALSE(rule.counter_examples.empty()) << rule.name;
  }
  EXPECT_EQ(with_pattern, 53u);
}

}  // namespace
}  // namespace lamina::graph
