// SPDX-License-Identifier: Apache-2.0
#include "page/thin.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

namespace lamina::page {
namespace {

struct Sample {
  std::vector<DeviceRow> rows;
  std::vector<uint32_t> names;
  std::vector<bool> found;
};

// Lanes of work with gaps; in the last one events overlap.
Sample MakeSample(uint32_t seed, size_t per_lane) {
  std::mt19937 random(seed);
  Sample sample;
  for (uint32_t lane = 0; lane < 3; ++lane) {
    int64_t at = 1000 + random() % 5000;
    for (size_t i = 0; i < per_lane; ++i) {
      DeviceRow row;
      row.lane = lane;
      row.start_ns = at;
      row.dur_ns = random() % 9 == 0 ? 0 : random() % 20000;
      row.family = random() % 5;
      row.kernel = 1 + random() % 7;
      row.op = random() % 3;
      row.module = random() % 4;
      row.layer = static_cast<uint32_t>(i / 10);
      row.pass = static_cast<uint32_t>(i / 100);
      row.step = static_cast<uint32_t>(i / 500);
      at += (lane == 2 ? row.dur_ns / 3 : row.dur_ns) + random() % 800;
      sample.rows.push_back(row);
      sample.names.push_back(row.kernel / 2);
      sample.found.push_back(random() % 900 == 0);
    }
  }
  return sample;
}

using Totals = std::map<uint32_t, std::pair<int64_t, int64_t>>;

void Count(Totals& totals, uint32_t key, int64_t events, int64_t dur_ns) {
  totals[key].first += events;
  totals[key].second += dur_ns;
}

TEST(ThinTest, SinglesAndMergedRowsAreEverything) {
  for (const size_t most : {50u, 400u, 2000u}) {
    const Sample sample = MakeSample(7, 1500);
    const ThinRows thin = Thin(sample.rows, sample.names, sample.found, most);
    const std::pair<std::string_view, uint32_t DeviceRow::*> columns[] = {
        {"lane", &DeviceRow::lane},     {"kernel", &DeviceRow::kernel},
        {"family", &DeviceRow::family}, {"op", &DeviceRow::op},
        {"module", &DeviceRow::module}, {"layer", &DeviceRow::layer},
        {"pass", &DeviceRow::pass},     {"step", &DeviceRow::step}};
    for (const auto& [name, column] : columns) {
      if (std::find(thin.dropped.begin(), thin.dropped.end(), name) !=
          thin.dropped.end())
        continue;
      Totals all, held;
      for (const DeviceRow& row : sample.rows)
        Count(all, row.*column, 1, row.dur_ns);
      for (const uint32_t i : thin.singles)
        Count(held, sample.rows[i].*column, 1, sample.rows[i].dur_ns);
      for (const MergedRow& row : thin.merged)
        Count(held, row.of.*column, row.events, row.of.dur_ns);
      EXPECT_EQ(held, all) << name << " " << most;
    }
    EXPECT_LE(thin.buckets.size(), most);
  }
}

TEST(ThinTest, ColumnsAreDroppedOnlyWhereTheyMustBe) {
  const Sample sample = MakeSample(8, 1500);
  EXPECT_TRUE(
      Thin(sample.rows, sample.names, sample.found, 4000).dropped.empty());
  // 3 lanes, 7 kernels, 5 families, 3 ops and 4 modules, each with 3 steps.
  EXPECT_EQ(Thin(sample.rows, sample.names, sample.found, 3500).dropped,
            std::vector<std::string_view>{"layer"});
  EXPECT_EQ(Thin(sample.rows, sample.names, sample.found, 100).dropped,
            (std::vector<std::string_view>{"layer", "pass", "step"}));
}

TEST(ThinTest, KeepsTheSlowestOfEachNameAndWhatIsAroundFindings) {
  const Sample sample = MakeSample(9, 1500);
  constexpr size_t kMost = 300;
  const ThinRows thin = Thin(sample.rows, sample.names, sample.found, kMost);
  std::vector<bool> kept(sample.rows.size());
  for (const uint32_t i : thin.singles) kept[i] = true;
  std::vector<bool> around(sample.rows.size());
  for (size_t i = 0; i < sample.rows.size(); ++i) {
    for (size_t k = 0; k < sample.rows.size(); ++k) {
      const size_t away = i < k ? k - i : i - k;
      if (sample.found[k] && away <= kAround &&
          sample.rows[i].lane == sample.rows[k].lane)
        around[i] = true;
    }
    EXPECT_TRUE(kept[i] || !around[i]) << i;
  }
  // Of a name nothing that was left out is slower than what was kept.
  std::map<uint32_t, int64_t> fastest_kept, slowest_left;
  size_t slow = 0;
  for (size_t i = 0; i < sample.rows.size(); ++i) {
    const int64_t dur = sample.rows[i].dur_ns;
    const uint32_t name = sample.names[i];
    if (!kept[i]) slowest_left[name] = std::max(slowest_left[name], dur);
    if (!kept[i] || around[i]) continue;
    ++slow;
    const auto [it, is_new] = fastest_kept.emplace(name, dur);
    it->second = std::min(it->second, dur);
  }
  EXPECT_EQ(fastest_kept.size(), 4u);
  for (const auto& [name, dur] : fastest_kept)
    EXPECT_LE(slowest_left[name], dur) << name;
  EXPECT_LE(slow, kMost);
  EXPECT_GT(slow, kMost / 2);
}

TEST(ThinTest, BucketsHoldEveryNanosecond) {
  const Sample sample = MakeSample(10, 700);
  const ThinRows thin = Thin(sample.rows, sample.names, sample.found, 500);
  // The slow way: every row into every bucket it touches.
  std::map<std::tuple<uint32_t, int64_t, uint32_t>, int64_t> expected, found;
  for (const DeviceRow& row : sample.rows) {
    const int64_t begin = row.start_ns - thin.origin_ns;
    for (int64_t b = 0; b * thin.bucket_ns < begin + row.dur_ns; ++b) {
      const int64_t part =
          std::min(begin + row.dur_ns, (b + 1) * thin.bucket_ns) -
          std::max(begin, b * thin.bucket_ns);
      if (part > 0) expected[{row.lane, b, row.family}] += part;
    }
  }
  for (const BucketRow& b : thin.buckets)
    found[{b.lane, b.bucket, b.family}] += b.busy_ns;
  EXPECT_EQ(found, expected);
  EXPECT_EQ(found.size(), thin.buckets.size());
  EXPECT_LE(thin.buckets.size(), 500u);
}

TEST(ThinTest, NothingAndOneBucket) {
  EXPECT_TRUE(Thin({}, {}, {}, 10).merged.empty());
  const Sample sample = MakeSample(11, 20);
  // Fewer than one bucket of each lane and family: the limit gives way.
  const ThinRows thin = Thin(sample.rows, sample.names, sample.found, 1);
  int64_t busy = 0, all = 0;
  for (const BucketRow& b : thin.buckets) busy += b.busy_ns;
  for (const DeviceRow& row : sample.rows) all += row.dur_ns;
  EXPECT_EQ(busy, all);
}

}  // namespace
}  // namespace lamina::page
