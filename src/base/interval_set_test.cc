// SPDX-License-Identifier: Apache-2.0
#include "base/interval_set.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

namespace lamina {
namespace {

// The obviously right twin: one element per nanosecond.
std::set<int64_t> Points(const std::vector<Interval>& intervals) {
  std::set<int64_t> points;
  for (const Interval& interval : intervals) {
    for (int64_t t = interval.start_ns; t < interval.end_ns; ++t)
      points.insert(t);
  }
  return points;
}
std::set<int64_t> Points(const IntervalSet& set) {
  return Points({set.intervals().begin(), set.intervals().end()});
}

std::vector<Interval> RandomIntervals(std::mt19937& random) {
  std::vector<Interval> out(random() % 8);
  for (Interval& interval : out) {
    interval.start_ns = static_cast<int64_t>(random() % 30);
    // Also empty and negative ones.
    interval.end_ns =
        interval.start_ns + static_cast<int64_t>(random() % 9) - 2;
  }
  return out;
}

TEST(IntervalSet, MatchesPointSets) {
  std::mt19937 random(1);
  for (int round = 0; round < 5000; ++round) {
    const auto x = RandomIntervals(random);
    const auto y = RandomIntervals(random);
    const IntervalSet a = IntervalSet::Of(x);
    const IntervalSet b = IntervalSet::Of(y);
    const auto p = Points(x);
    const auto q = Points(y);
    ASSERT_EQ(Points(a), p);
    ASSERT_EQ(a.length_ns(), static_cast<int64_t>(p.size()));
    std::set<int64_t> all = p, minus, both;
    all.insert(q.begin(), q.end());
    for (const int64_t t : p) (q.contains(t) ? both : minus).insert(t);
    ASSERT_EQ(Points(a.Union(b)), all);
    ASSERT_EQ(a.Union(b).length_ns(), static_cast<int64_t>(all.size()));
    ASSERT_EQ(Points(a.Minus(b)), minus);
    ASSERT_EQ(a.Minus(b).length_ns(), static_cast<int64_t>(minus.size()));
    ASSERT_EQ(Points(a.Intersect(b)), both);
    // Disjoint, in order, not touching.
    const auto intervals = a.intervals();
    for (size_t i = 1; i < intervals.size(); ++i)
      ASSERT_GT(intervals[i].start_ns, intervals[i - 1].end_ns);
    // Gaps are what is left of a window.
    std::set<int64_t> rest = Points({{5, 25}});
    for (const int64_t t : p) rest.erase(t);
    ASSERT_EQ(Points(a.Gaps({5, 25})), rest);
  }
}

TEST(IntervalSet, TouchingIntervalsJoin) {
  const IntervalSet set = IntervalSet::Of({{0, 5}, {5, 9}, {20, 21}});
  ASSERT_EQ(set.intervals().size(), 2u);
  EXPECT_EQ(set.length_ns(), 10);
}

}  // namespace
}  // namespace lamina
