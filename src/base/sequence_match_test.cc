// SPDX-License-Identifier: Apache-2.0
#include "base/sequence_match.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace lamina {
namespace {

using Sequence = std::vector<uint64_t>;

// Length of the longest common subsequence by the table of all prefixes.
size_t SlowLength(const Sequence& a, const Sequence& b) {
  std::vector<std::vector<size_t>> length(a.size() + 1,
                                          std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      length[i][j] = a[i - 1] == b[j - 1]
                         ? length[i - 1][j - 1] + 1
                         : std::max(length[i - 1][j], length[i][j - 1]);
    }
  }
  return length[a.size()][b.size()];
}

void ExpectValid(const Sequence& a, const Sequence& b,
                 const std::vector<SequencePair>& pairs) {
  for (size_t i = 0; i < pairs.size(); ++i) {
    ASSERT_LT(pairs[i].a, a.size());
    ASSERT_LT(pairs[i].b, b.size());
    EXPECT_EQ(a[pairs[i].a], b[pairs[i].b]);
    if (i > 0) {
      EXPECT_LT(pairs[i - 1].a, pairs[i].a);
      EXPECT_LT(pairs[i - 1].b, pairs[i].b);
    }
  }
}

Sequence Random(std::mt19937& random, size_t max_size, uint64_t letters) {
  Sequence out(random() % (max_size + 1));
  for (uint64_t& value : out) value = random() % letters;
  return out;
}

TEST(MatchSequences, FindsTheLongestCommonSubsequence) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    const uint64_t letters = 1 + random() % 6;
    const Sequence a = Random(random, 14, letters);
    const Sequence b = Random(random, 14, letters);
    const auto pairs = MatchSequences(a, b);
    ExpectValid(a, b, pairs);
    ASSERT_EQ(pairs.size(), SlowLength(a, b)) << "round " << round;
  }
}

TEST(MatchSequences, StaysValidWhenTheSearchIsCutShort) {
  std::mt19937 random(2);
  for (int round = 0; round < 5000; ++round) {
    const Sequence a = Random(random, 60, 5);
    const Sequence b = Random(random, 60, 5);
    const auto pairs = MatchSequences(a, b, 1 + random() % 4);
    ExpectValid(a, b, pairs);
    EXPECT_LE(pairs.size(), SlowLength(a, b));
  }
}

TEST(MatchSequences, IsQuickOnLongSequencesThatShareNoOrder) {
  std::mt19937 random(3);
  Sequence a(200000), b(200000);
  for (uint64_t& value : a) value = random() % 1000;
  for (uint64_t& value : b) value = random() % 1000;
  ExpectValid(a, b, MatchSequences(a, b, 64));
}

TEST(MatchSequences, KeepsEqualEnds) {
  const Sequence a{1, 2, 3, 4, 5};
  const Sequence b{1, 2, 9, 4, 5};
  EXPECT_EQ(MatchSequences(a, b),
            (std::vector<SequencePair>{{0, 0}, {1, 1}, {3, 3}, {4, 4}}));
}

}  // namespace
}  // namespace lamina
