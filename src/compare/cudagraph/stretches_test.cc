// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/stretches.h"

#include <gtest/gtest.h>
#include <random>

namespace lamina::cudagraph {
namespace {

std::vector<uint32_t> Joined(const std::vector<std::vector<uint32_t>>& parts) {
  std::vector<uint32_t> all;
  for (const auto& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Model of `layers` layers of eight kernels behind one of its own.
std::vector<uint32_t> Model(uint32_t own, uint32_t layers) {
  std::vector<uint32_t> model = {own};
  for (uint32_t l = 0; l < layers; ++l)
    for (uint32_t k : {1, 2, 3, 2, 4, 5, 6, 2}) model.push_back(k);
  model.push_back(own + 1);
  return model;
}

std::vector<std::pair<uint32_t, uint32_t>> Places(
    const std::vector<Stretch>& stretches) {
  std::vector<std::pair<uint32_t, uint32_t>> places;
  for (const Stretch& s : stretches)
    places.emplace_back(s.whole.replay_begin, s.whole.capture_begin);
  return places;
}

TEST(Stretches, OnceInTheCaptureFourTimesInTheReplay) {
  const auto once = Model(100, 3);
  const auto capture = Joined({{90, 91}, once, {92}});
  const auto size = static_cast<uint32_t>(once.size());
  const auto found = FindStretches(capture, Joined({once, once, once, once}));
  ASSERT_EQ(found.size(), 4u);
  for (uint32_t k = 0; k < 4; ++k) {
    EXPECT_EQ(found[k].whole.replay_begin, k * size);
    EXPECT_EQ(found[k].whole.capture_begin, 2u);
    EXPECT_EQ(found[k].whole.capture_end, 2 + size);
  }
}

TEST(Stretches, ThreeEqualIterationsTakeTheFirst) {
  const auto once = Model(100, 3);
  const auto capture = Joined({once, once, once});
  const auto found = FindStretches(capture, once);
  EXPECT_EQ(Places(found),
            (std::vector<std::pair<uint32_t, uint32_t>>{{0, 0}}));
  EXPECT_EQ(Occurrences(capture, 0, static_cast<uint32_t>(once.size())).size(),
            3u);
}

TEST(Stretches, TwoModelsAreToldApart) {
  const auto a = Model(100, 3), b = Model(200, 4);
  const auto n = static_cast<uint32_t>(a.size());
  const auto found = FindStretches(Joined({a, b}), Joined({b, a}));
  EXPECT_EQ(Places(found), (std::vector<std::pair<uint32_t, uint32_t>>{
                               {0, n}, {static_cast<uint32_t>(b.size()), 0}}));
}

TEST(Stretches, LaunchesOfOneModelAreItsPieces) {
  const auto model = Model(100, 4);
  const auto found =
      FindStretches(model, model, std::vector<uint32_t>{0, 9, 17});
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].pieces.size(), 3u);
  EXPECT_EQ(found[0].pieces[1].replay_begin, 9u);
  EXPECT_EQ(found[0].pieces[1].capture_begin, 9u);
  EXPECT_EQ(found[0].pieces[1].capture_end, 17u);
}

TEST(Stretches, StrangersFollowNothing) {
  EXPECT_TRUE(
      FindStretches(Model(100, 3), std::vector<uint32_t>(40, 77)).empty());
}

// Planted pieces with deletions and insertions: at least 95 % of the elements
// that were kept lie in a stretch that covers their place.
TEST(Stretches, PlantedPiecesAreFoundUnderNoise) {
  uint32_t kept = 0, right = 0;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](uint32_t n) { return random() % n; };
    std::vector<uint32_t> capture;
    for (int i = 0; i < 200; ++i) capture.push_back(below(60));
    std::vector<uint32_t> replay, place;
    for (int piece = 0; piece < 3; ++piece) {
      const uint32_t begin = below(120);
      for (uint32_t i = begin; i < begin + 60; ++i) {
        if (below(50) == 0) continue;
        if (below(50) == 0) {
          replay.push_back(1000 + below(5));
          place.push_back(UINT32_MAX);
        }
        replay.push_back(capture[i]);
        place.push_back(i);
      }
    }
    const auto found = FindStretches(capture, replay);
    for (uint32_t j = 0; j < replay.size(); ++j) {
      if (place[j] == UINT32_MAX) continue;
      ++kept;
      for (const Stretch& s : found)
        right += j >= s.whole.replay_begin && j < s.whole.replay_end &&
                 place[j] >= s.whole.capture_begin &&
                 place[j] < s.whole.capture_end;
    }
  }
  EXPECT_GE(right * 100, kept * 95);
}

TEST(Stretches, OccurrencesOfRepeats) {
  const std::vector<uint32_t> text = {1, 1, 2, 1, 1, 2, 1, 1};
  EXPECT_EQ(Occurrences(text, 0, 2), (std::vector<uint32_t>{0, 3, 6}));
  EXPECT_EQ(Occurrences(text, 1, 4), (std::vector<uint32_t>{1, 4}));
  EXPECT_EQ(Occurrences(text, 0, 8), (std::vector<uint32_t>{0}));
}

}  // namespace
}  // namespace lamina::cudagraph
