// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/log.h"

#include <array>
#include <gtest/gtest.h>
#include <random>

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

// Whatever a log holds, its entries written as summary lines are the same
// entries when they are read again.
TEST(TransformLog, ReadsWhatItWritesOfAnyLog) {
  constexpr std::array<std::string_view, 28> kParts = {
      "[stage=",     "s",         ", transform=", "transform=",
      "t",           "]",         "] [SUMMARY]",  " matches=",
      "3",           "-7",        "enabled=",     "True",
      "False",       "num_",      "skipped",      "skipped=",
      "disabled",    "[RANK 1] ", " failed",      "Transform ",
      "Skipping t ", "\x1b[3",    "\r",           "| time: ",
      "1e3s",        "\n",        "\n",           " "};
  std::mt19937 random(5);
  size_t entries = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (size_t i = 0; i < 60; ++i) {
      if (random() % 4 == 0) text += "\n[stage=s, transform=t] ";
      text += kParts[random() % kParts.size()];
    }
    const auto log = ParseTransformLog("t.log", text);
    if (!log) continue;
    std::string lines;
    for (const LogEntry& entry : log->entries)
      lines += SummaryLine(entry, {}) + "\n";
    const TransformLog again = Parse(lines);
    ASSERT_EQ(again.entries.size(), log->entries.size()) << text;
    for (size_t i = 0; i < again.entries.size(); ++i) {
      const LogEntry& written = log->entries[i];
      const LogEntry& read = again.entries[i];
      EXPECT_EQ(read.stage, written.stage) << text;
      EXPECT_EQ(read.transform, written.transform) << text;
      EXPECT_EQ(read.occurrence, written.occurrence) << text;
      EXPECT_EQ(read.status, written.status) << text;
      EXPECT_EQ(read.matches, written.matches) << text;
    }
    entries += again.entries.size();
  }
  EXPECT_GT(entries, 1000u);
}

}  // namespace
}  // namespace lamina::graph
