// SPDX-License-Identifier: Apache-2.0
#include "findings/job.h"

#include <gtest/gtest.h>

namespace lamina::findings {
namespace {

// Ranks that begin at once, with work of `fixed` and `each` per element.
std::vector<Arrival> Ranks(int64_t fixed, int64_t each,
                           const std::vector<int64_t>& elements) {
  std::vector<Arrival> out;
  for (const int64_t e : elements)
    out.push_back({1000 + fixed + each * e, fixed + each * e, e});
  return out;
}

TEST(EvenSaved, LargestAgainstMeanOfWhatDependsOnElements) {
  // 20 elements instead of 5 in the mean.
  const std::vector<int64_t> shares = {20, 0, 0, 0};
  EXPECT_EQ(EvenSaved(Ranks(0, 100, shares)), 1500);
  // A part that all have saves nothing more, whatever its size.
  EXPECT_EQ(EvenSaved(Ranks(50'000, 100, shares)), 1500);
  EXPECT_EQ(EvenSaved(Ranks(50'000, 100, {9, 20, 10, 10})), 775);
  // The more uneven, the more.
  int64_t before = 0;
  for (const int64_t least : {10, 5, 2, 1, 0}) {
    const int64_t saved = EvenSaved(Ranks(3000, 7, {least, 20, 10, 10}));
    EXPECT_GE(saved, before);
    before = saved;
  }
  EXPECT_GT(before, 0);
}

TEST(EvenSaved, NothingWhereElementsExplainNothing) {
  EXPECT_EQ(EvenSaved({}), 0);
  EXPECT_EQ(EvenSaved(Ranks(1000, 100, {20})), 0);
  EXPECT_EQ(EvenSaved(Ranks(1000, 100, {20, 20, 20})), 0);
  // Who has more takes less long.
  EXPECT_EQ(EvenSaved(Ranks(1000, -10, {20, 0, 10})), 0);
  // A rank that is late for another reason stays late.
  std::vector<Arrival> ranks = Ranks(1000, 100, {10, 10, 12, 8});
  ranks[3].start_ns += 50'000;
  ranks[3].work_ns += 50'000;
  EXPECT_EQ(EvenSaved(ranks), 0);
}

TEST(EvenSaved, NumbersOfADamagedTrace) {
  const int64_t huge = int64_t{1} << 62;
  const std::vector<Arrival> ranks = {{0, 1'000'000, 1}, {0, 3'000'000, huge}};
  EXPECT_LE(EvenSaved(ranks), 3'000'000);
  const std::vector<Arrival> times = {{-huge, -huge, 0}, {huge, huge, 5}};
  EXPECT_GE(EvenSaved(times), 0);
}

}  // namespace
}  // namespace lamina::findings
