// SPDX-License-Identifier: Apache-2.0
#include "analysis/host/model.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "analysis/host/cover.h"

namespace lamina::analysis::host {
namespace {

int64_t SlowPick(std::vector<int64_t> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q *
                                    static_cast<double>(values.size() - 1))];
}

TEST(Pick, IsWhatSortingSays) {
  std::mt19937_64 random(1);
  using Limits = std::numeric_limits<int64_t>;
  for (int round = 0; round < 60; ++round) {
    // Few and many values; a few distinct ones, outliers, the whole range.
    const size_t count = round % 3 == 0 ? random() % 50 : random() % 30000;
    const uint64_t range = uint64_t{1} << (random() % 40);
    std::vector<int64_t> values;
    for (size_t i = 0; i < count; ++i) {
      values.push_back(static_cast<int64_t>(random() % range) -
                       static_cast<int64_t>(range / 2));
      if (round % 4 == 1 && random() % 1000 == 0)
        values.back() = random() % 2 == 0 ? Limits::max() : Limits::min();
      if (round % 5 == 2) values.back() = static_cast<int64_t>(random());
    }
    for (const double q : {0.0, 0.1, 0.25, 0.5, 0.9, 1.0})
      EXPECT_EQ(Pick(values, q), SlowPick(values, q)) << round << " " << q;
  }
}

TEST(BoundNear, IsTheSameFromEverywhere) {
  for (size_t count = 0; count < 40; ++count) {
    for (size_t bound = 0; bound <= count; ++bound) {
      for (size_t near = 0; near <= count + 2; ++near) {
        EXPECT_EQ(BoundNear(count, near, [&](size_t i) { return i < bound; }),
                  bound);
      }
    }
  }
}

TEST(Cover, PlusIsTheUnionOfBoth) {
  const Cover a(std::vector<Interval>{{5, 9}, {0, 2}, {1, 3}});
  const Cover b(std::vector<Interval>{{3, 4}, {8, 12}});
  const Cover both = a.Plus(b);
  ASSERT_EQ(both.intervals().size(), 2u);
  EXPECT_EQ(both.intervals()[0], (Interval{0, 4}));
  EXPECT_EQ(both.intervals()[1], (Interval{5, 12}));
  EXPECT_EQ(both.Over(2, 6), 3);
}

}  // namespace
}  // namespace lamina::analysis::host
