// SPDX-License-Identifier: Apache-2.0
#include "analysis/host/model.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "analysis/host/cover.h"
#include "analysis/host/kernel_counters.h"
#include "analysis/host/work_stretch.h"
#include "trace/trace_testing.h"

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

// Work that overlaps, ends together and takes no time, sorted by start.
trace::Trace MakeWork(std::mt19937_64& random, size_t count) {
  std::vector<Interval> kernels;
  int64_t start = 0;
  for (size_t i = 0; i < count; ++i) {
    start += static_cast<int64_t>(random() % 4);
    kernels.push_back({start, start + static_cast<int64_t>(random() % 6)});
  }
  return trace::KernelTrace(kernels);
}

// The gaps of stretches are those of one walk over all work.
TEST(CutWork, LosesNothingBetweenStretches) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 100; ++round) {
    const trace::Trace trace = MakeWork(random, random() % 40);
    std::vector<SliceId> work;
    for (uint32_t i = 0; i < trace.slices.size(); ++i) work.emplace_back(i);
    std::stable_sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
      return trace.Start(a) < trace.Start(b);
    });
    using Found = std::tuple<int64_t, int64_t, uint32_t, uint32_t>;
    const auto gaps = [&](size_t events, int threads) {
      std::vector<Found> found;
      size_t at = 0;
      for (const WorkStretch& stretch : CutWork(trace, work, threads, events)) {
        EXPECT_EQ(stretch.begin, at);
        EXPECT_LT(stretch.begin, stretch.end);
        at = stretch.end;
        ForGaps(trace, work, stretch,
                [&](Interval gap, SliceId next, SliceId before) {
                  found.emplace_back(gap.start_ns, gap.end_ns, next.value,
                                     before.value);
                });
      }
      EXPECT_EQ(at, work.size());
      return found;
    };
    const auto whole = gaps(1000, 1);
    for (const size_t events : {1, 2, 3, 7}) {
      EXPECT_EQ(gaps(events, 1), whole);
      EXPECT_EQ(gaps(events, 3), whole);
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

// The longest by a table of all lengths.
size_t LongestOf(const std::vector<uint32_t>& a,
                 const std::vector<uint32_t>& b) {
  std::vector<std::vector<size_t>> best(a.size() + 1,
                                        std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) {
      best[i + 1][j + 1] = a[i] == b[j]
                               ? best[i][j] + 1
                               : std::max(best[i][j + 1], best[i + 1][j]);
    }
  }
  return best[a.size()][b.size()];
}

TEST(CommonSubsequence, IsTheLongest) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint32_t> a(random() % 20), b(random() % 20);
    const uint64_t kinds = 1 + random() % 5;
    for (uint32_t& x : a) x = static_cast<uint32_t>(random() % kinds);
    for (uint32_t& x : b) x = static_cast<uint32_t>(random() % kinds);
    const std::vector<uint32_t> partner = CommonSubsequence(a, b);
    ASSERT_EQ(partner.size(), a.size());
    size_t pairs = 0;
    int64_t last = -1;
    for (size_t i = 0; i < a.size(); ++i) {
      if (partner[i] == kNone) continue;
      ASSERT_LT(partner[i], b.size());
      ASSERT_EQ(a[i], b[partner[i]]);
      ASSERT_GT(static_cast<int64_t>(partner[i]), last);
      last = partner[i];
      ++pairs;
    }
    ASSERT_EQ(pairs, LongestOf(a, b)) << round;
  }
}

// Sequences that have little in common must not take forever: what both begin
// and end with is still found.
TEST(CommonSubsequence, OfStrangersIsTheirEnds) {
  std::vector<uint32_t> a = {1, 2}, b = {1, 2};
  for (uint32_t i = 0; i < 5000; ++i) {
    a.push_back(100 + 2 * i);
    b.push_back(101 + 2 * i);
  }
  a.push_back(3);
  b.push_back(3);
  const std::vector<uint32_t> partner = CommonSubsequence(a, b);
  EXPECT_EQ(partner[1], 1u);
  EXPECT_EQ(partner[2], kNone);
  EXPECT_EQ(partner.back(), b.size() - 1);
}

}  // namespace
}  // namespace lamina::analysis::host
