// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/assign.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace lamina::cudagraph {
namespace {

using Ids = std::vector<uint32_t>;
using Lists = std::vector<Ids>;

Ids Assigned(const Lists& segments, const Lists& launches) {
  return Assign(static_cast<uint32_t>(launches.size()),
                static_cast<uint32_t>(segments.size()),
                [&](uint32_t l, uint32_t s) {
                  return Distance(segments[s], launches[l]);
                });
}

TEST(Distance, CountsWhatOneSideLacks) {
  EXPECT_EQ(Distance(Ids{1, 2, 3}, Ids{1, 2, 3}), 0U);
  EXPECT_EQ(Distance(Ids{1, 2, 3}, Ids{3, 2, 1}), 1U);
  EXPECT_EQ(Distance(Ids{1, 2, 2}, Ids{2, 4}), 4U);
  EXPECT_EQ(Distance(Ids{}, Ids{}), 0U);
}

// Layers of one model: all but the ends have the same kernels.
TEST(Assign, EqualLayersFollowTheOrder) {
  const Lists segments = {{1, 2}, {2, 3}, {2, 3}, {2, 3}, {2, 4}};
  EXPECT_EQ(Assigned(segments, segments), (Ids{0, 1, 2, 3, 4}));
  Lists twice = segments;
  twice.insert(twice.end(), segments.begin(), segments.end());
  EXPECT_EQ(Assigned(segments, twice), (Ids{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
}

TEST(Assign, ContentsDecideWhereTheyDiffer) {
  const Lists segments = {{1, 2}, {3, 4}};
  EXPECT_EQ(Assigned(segments, {{3, 4}, {1, 2}, {3, 4}}), (Ids{1, 0, 1}));
  EXPECT_EQ(Assigned(segments, {{3, 4}}), (Ids{1}));
}

TEST(Assign, NoiseDoesNotBreakTheOrder) {
  const Lists segments = {
      {1, 2, 5, 6}, {2, 3, 5, 6}, {2, 3, 5, 6}, {2, 3, 5, 6}, {2, 4, 5, 6}};
  Lists launches = segments;
  launches[1] = {2, 5, 6};  // as near to the first
  launches[3] = {2, 9, 3, 5, 6};
  EXPECT_EQ(Assigned(segments, launches), (Ids{0, 1, 2, 3, 4}));
}

TEST(Assign, FewerLaunchesKeepTheOrder) {
  const Lists segments = {{1}, {2}, {2}, {3}};
  EXPECT_EQ(Assigned(segments, {{2}, {3}}), (Ids{1, 3}));
  EXPECT_EQ(Assigned(segments, {{2}, {2}, {3}}), (Ids{1, 2, 3}));
  EXPECT_EQ(Assigned(segments, {{1}, {2}, {2}}), (Ids{0, 1, 2}));
}

// The cheapest increasing choice, by trying all.
TEST(Assign, IncreasingChoiceIsTheCheapest) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    const uint32_t segments = 2 + random() % 6;
    const uint32_t launches = 1 + random() % (segments - 1);
    std::vector<Ids> costs(launches, Ids(segments));
    for (Ids& row : costs) {
      for (uint32_t& x : row) x = 10 + random() % 3;
    }
    const Ids found = Assign(launches, segments, [&](uint32_t l, uint32_t s) {
      return costs[l][s];
    });
    uint64_t best = UINT64_MAX;
    for (uint32_t mask = 0; mask < (1U << segments); ++mask) {
      if (static_cast<uint32_t>(__builtin_popcount(mask)) != launches) continue;
      uint64_t sum = 0;
      uint32_t l = 0;
      for (uint32_t s = 0; s < segments; ++s) {
        if ((mask >> s & 1) != 0) sum += costs[l++][s];
      }
      best = std::min(best, sum);
    }
    uint64_t sum = 0;
    for (uint32_t l = 0; l < launches; ++l) sum += costs[l][found[l]];
    EXPECT_EQ(sum, best);
    EXPECT_TRUE(std::adjacent_find(found.begin(), found.end(),
                                   std::greater_equal<>()) == found.end());
  }
}

}  // namespace
}  // namespace lamina::cudagraph
