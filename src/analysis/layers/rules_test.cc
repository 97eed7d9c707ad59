// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/layers/layers.h"

namespace lamina::analysis::layers {
namespace {

// Every rule matches its examples, and no earlier rule does.
TEST(LayerRules, Examples) {
  const auto rules = LoadRules(rules::DataSet());
  ASSERT_TRUE(rules) << rules.error().ToString();
  for (const auto& [name, table] : (*rules)->all()) {
    EXPECT_FALSE(table->rules().empty()) << name;
    for (const std::string& problem : rules::CheckExamples(*table))
      ADD_FAILURE() << name << ": " << problem;
  }
}

}  // namespace
}  // namespace lamina::analysis::layers
