// SPDX-License-Identifier: Apache-2.0
//
// The order of brackets, checked with a stack per lane as a viewer has it.
#include "emit/common/brackets.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <tuple>
#include <vector>

namespace lamina::emit {
namespace {

struct Result {
  std::vector<uint32_t> lane_of;  // by span
  uint64_t overlaps = 0;
  uint32_t lanes = 1;
};

Result Place(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::tuple(a.start_ns, -a.end_ns, a.index) <
           std::tuple(b.start_ns, -b.end_ns, b.index);
  });
  Result out;
  out.lane_of.resize(spans.size());
  std::map<uint32_t, std::vector<uint32_t>> open;
  std::map<uint32_t, int64_t> last;
  const auto in_order = [&](uint32_t lane, int64_t time_ns) {
    const auto it = last.try_emplace(lane, time_ns).first;
    EXPECT_LE(it->second, time_ns);
    it->second = time_ns;
  };
  size_t closed = 0;
  out.overlaps = PairBrackets(
      spans, 0,
      [&](size_t number) {
        EXPECT_EQ(number, out.lanes);
        return out.lanes++;
      },
      [&](uint32_t index, uint32_t lane, int64_t start_ns) {
        in_order(lane, start_ns);
        out.lane_of[index] = lane;
        open[lane].push_back(index);
      },
      [&](uint32_t index, uint32_t lane, int64_t end_ns) {
        in_order(lane, end_ns);
        // The end belongs to the last begin of its lane.
        ASSERT_FALSE(open[lane].empty());
        EXPECT_EQ(open[lane].back(), index);
        open[lane].pop_back();
        ++closed;
      });
  EXPECT_EQ(closed, spans.size());
  return out;
}

TEST(PairBrackets, KeepsWhatNestsOnOneLane) {
  const Result result =
      Place({{0, 100, 0}, {0, 50, 1}, {50, 50, 2}, {50, 100, 3}, {60, 70, 4}});
  EXPECT_EQ(result.lanes, 1u);
  EXPECT_EQ(result.overlaps, 0u);
}

TEST(PairBrackets, PutsOverlapsBeside) {
  const Result result =
      Place({{0, 100, 0}, {50, 150, 1}, {60, 140, 2}, {70, 160, 3}});
  EXPECT_EQ(result.lane_of, (std::vector<uint32_t>{0, 1, 1, 2}));
  EXPECT_EQ(result.overlaps, 3u);
}

TEST(PairBrackets, HoldsForRandomSpans) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<Span> spans(random() % 30);
    for (uint32_t i = 0; i < spans.size(); ++i) {
      const int64_t start = static_cast<int64_t>(random() % 40);
      spans[i] = {start, start + static_cast<int64_t>(random() % 20), i};
    }
    const Result result = Place(spans);
    uint64_t beside = 0;
    for (const uint32_t lane : result.lane_of) beside += lane != 0;
    EXPECT_EQ(result.overlaps, beside);
  }
}

// Beyond the lanes that are searched every span that overlaps has its own.
TEST(PairBrackets, StopsSearching) {
  std::vector<Span> spans;
  for (uint32_t i = 0; i < 200; ++i) spans.push_back({i, 1000 + i, i});
  EXPECT_EQ(Place(spans).lanes, 200u);
}

}  // namespace
}  // namespace lamina::emit
