// SPDX-License-Identifier: Apache-2.0
#include "graph/layers/repeats.h"

#include <gtest/gtest.h>
#include <random>

namespace lamina::graph {
namespace {

// `front` ops, then `count` layers of `unit` ops; layer `odd` has one more.
std::vector<uint32_t> Model(size_t front, size_t unit, size_t count, size_t odd,
                            size_t back, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> layer;
  for (size_t i = 0; i < unit; ++i) layer.push_back(random() % 9);
  std::vector<uint32_t> out;
  for (size_t i = 0; i < front; ++i)
    out.push_back(100 + static_cast<uint32_t>(i));
  for (size_t i = 0; i < count; ++i) {
    out.insert(out.end(), layer.begin(), layer.end());
    if (i == odd) out.push_back(50);
  }
  for (size_t i = 0; i < back; ++i)
    out.push_back(200 + static_cast<uint32_t>(i));
  return out;
}

TEST(FindRepeats, FindsLayersAndTheOddOne) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    for (const size_t odd : {size_t{99}, size_t{3}}) {
      const std::vector<uint32_t> ops = Model(4, 60, 6, odd, 3, seed);
      const std::vector<Repeat> got = FindRepeats(ops);
      ASSERT_EQ(got.size(), 6u) << seed;
      EXPECT_EQ(got[0].begin, 4u);
      for (size_t i = 0; i < 6; ++i) {
        EXPECT_EQ(got[i].end - got[i].begin, i == odd ? 61u : 60u);
        if (i > 0) {
          EXPECT_EQ(got[i].begin, got[i - 1].end);
        }
      }
    }
  }
}

TEST(FindRepeats, NothingRepeatsInNoise) {
  std::mt19937 random(7);
  std::vector<uint32_t> ops;
  for (int i = 0; i < 500; ++i) ops.push_back(random() % 40);
  EXPECT_TRUE(FindRepeats(ops).empty());
  EXPECT_TRUE(FindRepeats({}).empty());
  EXPECT_TRUE(FindRepeats(std::vector<uint32_t>{1, 2, 1, 2, 1, 2}).empty());
}

TEST(FindRepeats, TwoAreNotEnough) {
  EXPECT_TRUE(FindRepeats(Model(4, 60, 2, 99, 3, 1)).empty());
}

}  // namespace
}  // namespace lamina::graph
