// SPDX-License-Identifier: Apache-2.0
//
// The timeline against a twin that looks at every nanosecond, statistics
// against their definitions.
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "analysis/common/stats.h"
#include "analysis/common/timeline.h"
#include "trace/trace_testing.h"

namespace lamina::analysis {
namespace {

struct Work {
  int64_t start;
  int64_t dur;
  Bucket bucket;
};

trace::Trace MakeTrace(const std::vector<Work>& works) {
  std::vector<Interval> kernels;
  for (const Work& work : works)
    kernels.push_back({work.start, work.start + work.dur});
  return trace::KernelTrace(kernels);
}

TEST(Timeline, IsRightForEveryNanosecond) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Work> works;
    const int count = 1 + static_cast<int>(random() % 12);
    for (int i = 0; i < count; ++i) {
      works.push_back({static_cast<int64_t>(random() % 100),
                       static_cast<int64_t>(random() % 20),
                       static_cast<Bucket>(random() % 3)});
    }
    const trace::Trace trace = MakeTrace(works);
    // Slices keep the order in which they were added.
    const Timeline timeline = MakeTimeline(
        trace, trace.device_slices(),
        [&](SliceId s) { return works[s.value].bucket; }, 5);

    int64_t first = works[0].start;
    int64_t last = 0;
    for (const Work& w : works) {
      first = std::min(first, w.start);
      last = std::max(last, w.start + w.dur);
    }
    int64_t computation = 0;
    int64_t communication = 0;
    int64_t copies = 0;
    int64_t idle = 0;
    int64_t micro_idle = 0;
    int64_t run = 0;
    for (int64_t t = first; t <= last; ++t) {
      bool on[3] = {false, false, false};
      for (const Work& w : works) {
        if (w.start <= t && t < w.start + w.dur)
          on[static_cast<size_t>(w.bucket)] = true;
      }
      const bool any = on[0] || on[1] || on[2];
      if (t < last && !any) {
        ++idle;
        ++run;
      } else {
        if (run < 5) micro_idle += run;
        run = 0;
      }
      if (t == last) break;
      if (on[static_cast<size_t>(Bucket::kCompute)]) {
        ++computation;
      } else if (on[static_cast<size_t>(Bucket::kCommunication)]) {
        ++communication;
      } else if (any) {
        ++copies;
      }
    }
    EXPECT_EQ(timeline.total_ns, last - first);
    EXPECT_EQ(timeline.computation_ns, computation);
    EXPECT_EQ(timeline.exposed_communication_ns, communication);
    EXPECT_EQ(timeline.exposed_copies_ns, copies);
    EXPECT_EQ(timeline.idle_ns, idle);
    EXPECT_EQ(timeline.micro_idle_ns, micro_idle);
    EXPECT_EQ(timeline.busy_ns + timeline.idle_ns, timeline.total_ns);
    int64_t gaps = 0;
    for (const Interval& gap : timeline.Gaps()) gaps += gap.length_ns();
    EXPECT_EQ(gaps, idle);
  }
}

TEST(Stats, FollowTheirDefinitions) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    std::vector<int64_t> values(1 + random() % 40);
    for (int64_t& value : values) value = static_cast<int64_t>(random() % 1000);
    const std::vector<int64_t> given = values;
    const Stats stats = Summarize(values);
    const int64_t sum = std::accumulate(given.begin(), given.end(), int64_t{0});
    EXPECT_EQ(stats.count, given.size());
    EXPECT_EQ(stats.sum, sum);
    EXPECT_EQ(stats.min, *std::min_element(given.begin(), given.end()));
    EXPECT_EQ(stats.max, *std::max_element(given.begin(), given.end()));
    const double mean =
        static_cast<double>(sum) / static_cast<double>(given.size());
    EXPECT_DOUBLE_EQ(stats.mean, mean);
    // Nearest rank: the smallest value that 99 % are not above.
    size_t rank = 0;
    while (100 * (rank + 1) < 99 * values.size()) ++rank;
    EXPECT_EQ(stats.p99, values[rank]);
    const size_t n = values.size();
    EXPECT_DOUBLE_EQ(
        stats.median,
        static_cast<double>(values[(n - 1) / 2] + values[n / 2]) / 2);
    ASSERT_EQ(stats.std_dev.has_value(), n > 1);
    if (n > 1) {
      double squares = 0;
      for (const int64_t value : given)
        squares += (static_cast<double>(value) - mean) *
                   (static_cast<double>(value) - mean);
      EXPECT_NEAR(*stats.std_dev,
                  std::sqrt(squares / static_cast<double>(n - 1)), 1e-6);
    }
  }
}

TEST(Stats, HistogramHoldsEveryValueOnce) {
  const auto bins = MakeHistogram({1000, 2000, 3000, 4000, 10000}, 3);
  ASSERT_EQ(bins.size(), 3U);
  EXPECT_DOUBLE_EQ(bins[0].start_us, 1);
  EXPECT_DOUBLE_EQ(bins[2].end_us, 10);
  EXPECT_EQ(bins[0].count, 3);
  EXPECT_EQ(bins[1].count, 1);
  EXPECT_EQ(bins[2].count, 1);
}

}  // namespace
}  // namespace lamina::analysis
