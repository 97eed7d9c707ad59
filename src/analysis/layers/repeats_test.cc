// SPDX-License-Identifier: Apache-2.0
//
// Repeats against slow twins and planted models of many shapes.
#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

#include "analysis/layers/structure.h"

namespace lamina::analysis::layers {
namespace {

using Ids = std::vector<uint32_t>;

// All maximal repeats of two copies or more by definition.
std::vector<Region> SlowRegions(const Ids& ids) {
  std::vector<Region> all;
  const auto n = static_cast<uint32_t>(ids.size());
  for (uint32_t p = 4; p < n; ++p) {
    for (uint32_t i = 0; i + p < n;) {
      uint32_t run = 0;
      while (i + run + p < n && ids[i + run] == ids[i + run + p]) ++run;
      if (run + 2 >= p && run >= 8 &&
          std::set<uint32_t>(ids.begin() + i, ids.begin() + i + p).size() >= 3)
        all.push_back({i, i + run + p, p});
      i += run + 1;
    }
  }
  return all;
}

uint32_t SlowEdits(const Ids& a, const Ids& b) {
  std::vector<std::vector<uint32_t>> d(a.size() + 1,
                                       std::vector<uint32_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = static_cast<uint32_t>(i + j);
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1,
                          d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
    }
  }
  return d[a.size()][b.size()];
}

TEST(EditDistance, IsThatOfTheFullTable) {
  std::mt19937 random(3);
  for (int round = 0; round < 400; ++round) {
    Ids a(random() % 12);
    Ids b(random() % 12);
    for (uint32_t& x : a) x = random() % 3;
    for (uint32_t& x : b) x = random() % 3;
    const uint32_t expected = SlowEdits(a, b);
    for (uint32_t limit = 0; limit < 14; ++limit)
      EXPECT_EQ(EditDistance(a, b, limit), std::min(expected, limit + 1));
  }
}

Ids RandomUnit(std::mt19937& random, uint32_t length, uint32_t alphabet) {
  Ids unit(length);
  for (uint32_t& x : unit) x = random() % alphabet;
  return unit;
}

// Every region found is one by definition; every planted repeat is found.
TEST(Regions, AreRightAndFindWhatIsPlanted) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const Ids unit = RandomUnit(random, 6 + random() % 20, 40);
    Ids ids = RandomUnit(random, random() % 30, 1000);
    for (uint32_t& x : ids) x += 100;
    const auto begin = static_cast<uint32_t>(ids.size());
    const uint32_t copies = 3 + random() % 10;
    for (uint32_t c = 0; c < copies; ++c)
      ids.insert(ids.end(), unit.begin(), unit.end());
    const auto end = static_cast<uint32_t>(ids.size());
    for (uint32_t i = random() % 30; i > 0; --i) ids.push_back(2000 + i);
    const auto slow = SlowRegions(ids);
    bool planted = false;
    for (const Region& r : FindRegions(ids)) {
      EXPECT_TRUE(std::any_of(slow.begin(), slow.end(), [&](const Region& s) {
        return s.begin == r.begin && s.end == r.end && s.period == r.period;
      }));
      planted = planted || (r.begin <= begin && r.end >= end &&
                            unit.size() % r.period == 0);
    }
    EXPECT_TRUE(planted ||
                std::set<uint32_t>(unit.begin(), unit.end()).size() < 3)
        << "round " << round;
  }
}

std::vector<Found> Layers(const Ids& ids, std::vector<uint16_t> marks = {}) {
  return FindStructure({ids, ids, marks}, {}).layers;
}

// Random models: prologue, equal layers, epilogue, a few kernels changed.
TEST(Stacks, CountLayersOfRandomModels) {
  std::mt19937 random(9);
  int right = 0;
  constexpr int kModels = 100;
  for (int model = 0; model < kModels; ++model) {
    const uint32_t layers = 3 + random() % 62;
    const Ids unit = RandomUnit(random, 8 + random() % 30, 60);
    Ids ids;
    const auto distinct = [&](uint32_t count) {
      for (uint32_t i = 0; i < count; ++i)
        ids.push_back(1000 + static_cast<uint32_t>(ids.size()));
    };
    distinct(random() % 20);
    for (uint32_t l = 0; l < layers; ++l)
      ids.insert(ids.end(), unit.begin(), unit.end());
    distinct(random() % 20);
    right += Layers(ids).size() == layers;
  }
  EXPECT_GE(right, 97);
}

// The same with up to two kernels of a hundred missing, added or exchanged.
TEST(Stacks, CountLayersOfNoisyModels) {
  std::mt19937 random(21);
  int right = 0;
  constexpr int kModels = 100;
  for (int model = 0; model < kModels; ++model) {
    const uint32_t layers = 8 + random() % 57;
    const Ids unit = RandomUnit(random, 12 + random() % 30, 60);
    Ids clean;
    for (uint32_t l = 0; l < layers; ++l)
      clean.insert(clean.end(), unit.begin(), unit.end());
    Ids ids;
    const uint32_t noise = 150 + random() % 600;
    for (const uint32_t id : clean) {
      switch (random() % noise) {
        case 0:
          break;  // missing
        case 1:
          ids.push_back(id);
          ids.push_back(5000 + random() % 3);
          break;
        case 2:
          ids.push_back(6000 + random() % 3);
          break;
        default:
          ids.push_back(id);
      }
    }
    right += Layers(ids).size() == layers;
  }
  RecordProperty("right", right);
  std::printf("%d of %d noisy models have the exact count\n", right, kModels);
  EXPECT_GE(right, 97);
}

TEST(Stacks, AlternatingLayersCountAsLayers) {
  // Two layers that differ in one kernel of twelve.
  Ids a = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  Ids b = a;
  b[5] = 99;
  Ids ids = {500, 501};
  for (int i = 0; i < 12; ++i) {
    ids.insert(ids.end(), a.begin(), a.end());
    ids.insert(ids.end(), b.begin(), b.end());
  }
  const Structure found = FindStructure({ids, ids, {}}, {});
  ASSERT_EQ(found.families, 1U);
  EXPECT_EQ(found.of_family[0].per_unit, 2U);
  EXPECT_EQ(found.layers.size(), 24U);
}

TEST(Stacks, NothingIsInvented) {
  Ids equal(5000, 7);
  EXPECT_TRUE(Layers(equal).empty());
  Ids different(5000);
  for (uint32_t i = 0; i < different.size(); ++i) different[i] = i;
  EXPECT_TRUE(Layers(different).empty());
  std::mt19937 random(1);
  EXPECT_TRUE(Layers(RandomUnit(random, 5000, 1000)).empty());
}

// The words that have the most repeats end soon, too.
TEST(Stacks, AdversarialWordsEndSoon) {
  Ids a = {1};
  Ids b = {1, 2};
  while (b.size() < 200000) {
    Ids next = b;
    next.insert(next.end(), a.begin(), a.end());
    a = std::move(b);
    b = std::move(next);
  }
  Layers(b);
  Ids thue(200000);
  for (uint32_t i = 0; i < thue.size(); ++i)
    thue[i] = static_cast<uint32_t>(__builtin_popcount(i) % 2);
  Layers(thue);
}

// As many stacks as a long serving trace has passes.
TEST(Stacks, EveryPassIsFound) {
  constexpr uint32_t kPasses = 6000;
  Ids ids;
  for (uint32_t pass = 0; pass < kPasses; ++pass) {
    ids.insert(ids.end(), {100, 101, 102, 103, 104, 105});
    for (int layer = 0; layer < 4; ++layer)
      ids.insert(ids.end(), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  }
  const auto layers = Layers(ids);
  ASSERT_EQ(layers.size(), 4 * kPasses);
  for (size_t l = 0; l < layers.size(); ++l)
    EXPECT_EQ(layers[l].begin, 46 * (l / 4) + 6 + 10 * (l % 4));
}

// Three layers of which one has another kernel: no three copies. What the
// kernels do says where the layers are.
TEST(Stacks, FewLayersNeedNormAndAttention) {
  Ids ids;
  for (uint32_t i = 0; i < 60; ++i) ids.push_back(100 + i);
  for (uint32_t layer = 0; layer < 3; ++layer) {
    for (uint32_t i = 1; i <= 12; ++i)
      ids.push_back(layer == 2 && i == 7 ? 50 : i);
  }
  std::vector<uint16_t> marks(ids.size(), kNoMark);
  EXPECT_TRUE(Layers(ids, marks).empty());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == 1) marks[i] = kNormMark;
    if (ids[i] == 2 || ids[i] == 5) marks[i] = kGemmMark;
    if (ids[i] == 4) marks[i] = kAttentionMark;
  }
  const auto layers = Layers(ids, marks);
  ASSERT_EQ(layers.size(), 3U);
  for (const Found& layer : layers) EXPECT_EQ(ids[layer.begin], 1U);
}

TEST(Stacks, LayersBeginAtTheNormBeforeAttention) {
  const Ids unit = {1, 2, 3, 4, 5, 6, 7, 8};
  Ids ids = {100, 101, 102};
  for (int i = 0; i < 10; ++i) ids.insert(ids.end(), unit.begin(), unit.end());
  // Of two norms the one with a product and then attention behind it.
  std::vector<uint16_t> marks(ids.size(), kNoMark);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == 1 || ids[i] == 4) marks[i] = kNormMark;
    if (ids[i] == 2 || ids[i] == 5) marks[i] = kGemmMark;
    if (ids[i] == 6) marks[i] = kAttentionMark;
  }
  const auto layers = Layers(ids, marks);
  ASSERT_GE(layers.size(), 9U);
  for (const Found& layer : layers) EXPECT_EQ(ids[layer.begin], 4U);
}

}  // namespace
}  // namespace lamina::analysis::layers
