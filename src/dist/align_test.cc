// SPDX-License-Identifier: Apache-2.0
#include "dist/align.h"

#include <gtest/gtest.h>
#include <random>

namespace lamina::dist {
namespace {

struct Recorded {
  std::vector<AlignItem> items;
  std::vector<int> truth;  // number of the call
};

struct World {
  int calls = 200;
  uint32_t signatures = 1;
  double lost = 0;        // part of the calls that one rank lacks
  int64_t offset_ns = 0;  // of the clock
  double drift = 0;
  int64_t jitter_ns = 300;
};

// One rank's record of calls that all ranks take part in.
Recorded Record(const World& world, uint64_t seed, uint64_t rank) {
  std::mt19937_64 shared(seed);  // the same for both ranks
  std::mt19937_64 own(seed * 77 + rank);
  Recorded out;
  int64_t t = 1'000'000;
  for (int c = 0; c < world.calls; ++c) {
    const auto signature = static_cast<uint32_t>(shared() % world.signatures);
    t += 20'000 + static_cast<int64_t>(shared() % 60'000);
    const auto jitter =
        static_cast<int64_t>(own() % 1000) * world.jitter_ns / 1000;
    const auto dur = static_cast<int64_t>(5'000 + own() % 15'000);
    if (static_cast<double>(own() % 10'000) < world.lost * 10'000) continue;
    const auto local = [&](int64_t at) {
      return at + world.offset_ns +
             static_cast<int64_t>(world.drift * static_cast<double>(at));
    };
    out.items.push_back(
        {signature, local(t - dur + jitter), local(t + jitter)});
    out.truth.push_back(c);
  }
  return out;
}

// The truth knows the number of every call.
void ExpectTrueMatches(const World& world, uint64_t seed) {
  World first = world;
  first.offset_ns = 0;
  first.drift = 0;
  const Recorded a = Record(first, seed, 0);
  const Recorded b = Record(world, seed, 1);
  const auto match = AlignCalls(a.items, b.items);
  ASSERT_EQ(match.size(), b.items.size());
  for (size_t j = 0; j < match.size(); ++j) {
    const auto it = std::find(a.truth.begin(), a.truth.end(), b.truth[j]);
    const int32_t expected = it == a.truth.end()
                                 ? kNoMatch
                                 : static_cast<int32_t>(it - a.truth.begin());
    ASSERT_EQ(match[j], expected) << "call " << b.truth[j] << " seed " << seed;
  }
}

TEST(Align, EqualCallsWithLosses) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    World world;
    world.lost = 0.03;
    world.offset_ns = static_cast<int64_t>(seed * 777'777) - 15'000'000;
    ExpectTrueMatches(world, seed);
  }
}

TEST(Align, SeveralKindsWithManyLosses) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    World world;
    world.signatures = 5;
    world.lost = 0.15;
    world.offset_ns = -4'000'000;
    ExpectTrueMatches(world, seed);
  }
}

TEST(Align, ClocksThatRunApart) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    World world;
    world.calls = 3000;
    world.lost = 0.01;
    world.offset_ns = 5'000'000;
    world.drift = (static_cast<double>(seed) - 10) * 8e-6;
    ExpectTrueMatches(world, seed);
  }
}

TEST(Align, WithoutTimesThatAgreeOrderDecides) {
  std::mt19937_64 random(3);
  std::vector<AlignItem> a, b;
  for (int i = 0; i < 50; ++i) {
    const auto t = static_cast<int64_t>(i) * 10'000'000;
    a.push_back({7, t, t + 1000});
    const auto late = t + static_cast<int64_t>(random() % 9'000'000);
    b.push_back({7, late, late + 1000});
  }
  const auto match = AlignCalls(a, b);
  for (size_t i = 0; i < match.size(); ++i)
    EXPECT_EQ(match[i], static_cast<int32_t>(i));
}

// Longest common subsequence by trying everything.
size_t Longest(const std::vector<AlignItem>& a, size_t i,
               const std::vector<AlignItem>& b, size_t j) {
  if (i == a.size() || j == b.size()) return 0;
  const size_t skip =
      std::max(Longest(a, i + 1, b, j), Longest(a, i, b, j + 1));
  return a[i].signature == b[j].signature
             ? std::max(skip, 1 + Longest(a, i + 1, b, j + 1))
             : skip;
}

// Where time says nothing, as many calls are paired as can be.
TEST(Align, PairsAsManyAsTheSlowTwin) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<AlignItem> a, b;
    for (auto* list : {&a, &b}) {
      const size_t size = 1 + random() % 7;
      for (size_t i = 0; i < size; ++i) {
        list->push_back({static_cast<uint32_t>(random() % 3), 0, 0});
      }
    }
    const auto match = AlignByOrder(a, b);
    size_t pairs = 0;
    int32_t last = -1;
    for (size_t j = 0; j < match.size(); ++j) {
      if (match[j] == kNoMatch) continue;
      ++pairs;
      ASSERT_GT(match[j], last);
      last = match[j];
      ASSERT_EQ(a[static_cast<size_t>(match[j])].signature, b[j].signature);
    }
    ASSERT_EQ(pairs, Longest(a, 0, b, 0));
  }
}

TEST(Align, EmptyLists) {
  const std::vector<AlignItem> none;
  const std::vector<AlignItem> one = {{1, 0, 5}};
  EXPECT_TRUE(AlignCalls(one, none).empty());
  EXPECT_EQ(AlignCalls(none, one), std::vector<int32_t>{kNoMatch});
  EXPECT_EQ(AlignCalls(one, one), std::vector<int32_t>{0});
}

}  // namespace
}  // namespace lamina::dist
