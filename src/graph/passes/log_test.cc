// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/log.h"

#include <gtest/gtest.h>

namespace lamina::graph {
namespace {

TransformLog Parse(std::string_view text) {
  auto log = ParseTransformLog("t.log", text);
  EXPECT_TRUE(log) << log.error().ToString();
  return log ? *log : TransformLog();
}

TEST(TransformLog, ReadsTheNewerGenerationWithPrefixAndColors) {
  const TransformLog log = Parse(
      "\x1b[32m[TRT-LLM AUTO-DEPLOY] [RANK 0] [I] [stage=post_load_fusion, "
      "transform=fuse_rmsnorm]\x1b[0m [SUMMARY] matches=65 | time: 0.104s "
      "(pre=0.001s, apply=0.085s, post=0.018s)\r\n"
      "[TRT-LLM AUTO-DEPLOY] [RANK 0] [I] [stage=cache_init, transform=c] "
      "[SUMMARY] skipped | time: 0.004s\n"
      "[TRT-LLM AUTO-DEPLOY] [RANK 0] [I] [stage=cache_init, transform=d] "
      "[SUMMARY] disabled\n"
      "[TRT-LLM AUTO-DEPLOY] [RANK 1] [I] [stage=cache_init, transform=c] "
      "[SUMMARY] matches=7\n");
  ASSERT_EQ(log.entries.size(), 3u);
  EXPECT_EQ(log.entries[0].stage, "post_load_fusion");
  EXPECT_EQ(log.entries[0].matches, 65);
  EXPECT_EQ(log.entries[0].total_ns, 104000000);
  EXPECT_EQ(log.entries[1].status, TransformStatus::kSkipped);
  EXPECT_EQ(log.entries[1].matches, 0);
  EXPECT_EQ(log.entries[2].status, TransformStatus::kDisabled);
  EXPECT_EQ(log.entries[2].matches, std::nullopt);
  EXPECT_EQ(log.other_ranks, 1u);
}

TEST(TransformLog, ReadsTheOlderGeneration) {
  const TransformLog log = Parse(
      "[stage=s, transform=a] enabled=True, num_matches=4, is_clean=True, "
      "has_valid_shapes=False\n"
      "[stage=s, transform=a] elapsed time: total=0.250s, pre_cleanup=0.1s, "
      "apply=0.1s, post_cleanup=0.05s\n"
      "[stage=s, transform=b] enabled=True, skipped=True, is_clean=True, "
      "has_valid_shapes=True\n"
      "[stage=s, transform=c] enabled=False\n");
  ASSERT_EQ(log.entries.size(), 3u);
  EXPECT_EQ(log.entries[0].matches, 4);
  EXPECT_EQ(log.entries[0].total_ns, 250000000);
  EXPECT_EQ(log.entries[0].has_valid_shapes, false);
  EXPECT_EQ(log.entries[1].status, TransformStatus::kSkipped);
  EXPECT_EQ(log.entries[2].status, TransformStatus::kDisabled);
}

TEST(TransformLog, CountsRepeatsOfATransform) {
  const TransformLog log = Parse(
      "[stage=s, transform=a] [SUMMARY] matches=1\n"
      "[stage=s, transform=a] [SUMMARY] matches=2\n");
  ASSERT_NE(log.Find("a", 1), nullptr);
  EXPECT_EQ(log.Find("a", 1)->matches, 2);
  EXPECT_EQ(log.Find("a", 2), nullptr);
}

TEST(TransformLog, JoinsFailuresToTheirTransform) {
  const TransformLog log = Parse(
      "Transform a failed: shapes differ\n"
      "[stage=s, transform=a] [SUMMARY] matches=0 | time: 0.1s\n"
      "[stage=s, transform=b] [SUMMARY] matches=3 | time: 0.1s\n"
      "Transform b failed: no kernel\n");
  ASSERT_EQ(log.entries.size(), 2u);
  EXPECT_EQ(log.entries[0].status, TransformStatus::kFailed);
  EXPECT_EQ(log.entries[0].message, "Transform a failed: shapes differ");
  EXPECT_EQ(log.entries[1].status, TransformStatus::kFailed);
  EXPECT_EQ(log.entries[1].matches, std::nullopt);
}

TEST(TransformLog, RefusesOtherText) {
  EXPECT_FALSE(ParseTransformLog("x", "nothing\nto see [stage=\n"));
  EXPECT_FALSE(ParseTransformLog("x", ""));
}

TEST(TransformLog, ReadsWhatItWrites) {
  LogEntry entry;
  entry.stage = "s";
  entry.transform = "a";
  entry.matches = 12;
  const std::string line = SummaryLine(entry, {1000000, 85000000, 18000000});
  EXPECT_EQ(line,
            "[stage=s, transform=a] [SUMMARY] matches=12 | time: 0.104s "
            "(pre=0.001s, apply=0.085s, post=0.018s)");
  const TransformLog log = Parse(line);
  EXPECT_EQ(log.entries[0].matches, 12);
  EXPECT_EQ(log.entries[0].total_ns, 104000000);
}

}  // namespace
}  // namespace lamina::graph
