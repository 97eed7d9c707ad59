// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/align.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace lamina::cudagraph {
namespace {

using Ids = std::vector<uint32_t>;

std::vector<Match> Matches(const Ids& capture, const Ids& replay,
                           const std::vector<uint32_t>& streams = {}) {
  std::vector<uint8_t> a(capture.size());
  std::vector<uint8_t> b(replay.size());
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<uint8_t>(capture[i] % 5);
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = static_cast<uint8_t>(replay[i] % 5);
  return Align({capture, a, {}}, {replay, b, streams});
}

// All optimal alignments by brute force: the partners of every element.
void Enumerate(const Ids& a, const Ids& b, size_t i, size_t j,
               std::vector<std::pair<size_t, size_t>>& pairs, size_t& best,
               std::vector<std::set<size_t>>& partners) {
  if (i == a.size() || j == b.size()) {
    if (pairs.size() < best) return;
    if (pairs.size() > best) {
      best = pairs.size();
      for (auto& set : partners) set.clear();
    }
    for (const auto& [x, y] : pairs) partners[y].insert(x);
    return;
  }
  if (a[i] == b[j]) {
    pairs.emplace_back(i, j);
    Enumerate(a, b, i + 1, j + 1, pairs, best, partners);
    pairs.pop_back();
  }
  Enumerate(a, b, i + 1, j, pairs, best, partners);
  Enumerate(a, b, i, j + 1, pairs, best, partners);
}

TEST(Align, SureMeansOnePartnerOnEveryOptimalAlignment) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    Ids a(1 + random() % 7);
    Ids b(1 + random() % 7);
    for (uint32_t& x : a) x = random() % 3;
    for (uint32_t& x : b) x = random() % 3;
    Ids sorted_a = a;
    Ids sorted_b = b;
    std::sort(sorted_a.begin(), sorted_a.end());
    std::sort(sorted_b.begin(), sorted_b.end());
    if (sorted_a == sorted_b) continue;  // exact or fifo
    std::vector<std::set<size_t>> partners(b.size());
    std::vector<std::pair<size_t, size_t>> pairs;
    size_t best = 0;
    Enumerate(a, b, 0, 0, pairs, best, partners);
    const auto matches = Matches(a, b);
    for (size_t j = 0; j < b.size(); ++j) {
      if (matches[j].level == Level::kSure) {
        ASSERT_EQ(partners[j].size(), 1U);
        EXPECT_EQ(*partners[j].begin(), matches[j].partner);
      }
      if (matches[j].level == Level::kLcs) {
        EXPECT_EQ(partners[j].size(), matches[j].alternatives);
        EXPECT_TRUE(partners[j].contains(matches[j].partner));
      }
    }
  }
}

TEST(Align, EqualSequencesAreExact) {
  const Ids ids = {1, 2, 3, 2, 1};
  for (const Match& match : Matches(ids, ids))
    EXPECT_EQ(match.level, Level::kExact);
}

TEST(Align, AnotherOrderIsTakenInsideNames) {
  const Ids capture = {1, 2, 1, 3};
  const Ids replay = {2, 1, 3, 1};
  const auto matches = Matches(capture, replay);
  EXPECT_EQ(matches[1].partner, 0U);
  EXPECT_EQ(matches[3].partner, 2U);
  for (const Match& match : matches) EXPECT_EQ(match.level, Level::kFifo);
  // Streams keep their order: there is one way to deal the capture out.
  const auto spread = Matches(capture, replay, {0, 0, 0, 1});
  EXPECT_EQ(spread[1].partner, 2U);
  EXPECT_EQ(spread[3].partner, 0U);
  for (const Match& match : spread) EXPECT_EQ(match.level, Level::kExact);
  // Unless each stream can have been the first.
  const auto either =
      Matches({1, 4, 1, 4, 2}, {1, 1, 4, 4, 2}, {0, 1, 0, 1, 0});
  EXPECT_EQ(either[0].level, Level::kLcs);
  EXPECT_EQ(either[4].level, Level::kExact);
}

// A capture dealt out to streams in stretches, as branches of a model are, that
// run at speeds of their own.
TEST(Align, StreamsAreDealtOutOfTheCapture) {
  size_t facts = 0;
  size_t kernels = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const uint32_t streams = 2 + seed % 2;
    const uint32_t names = 3 + random() % 20;
    struct Kernel {
      uint32_t token, place, stream;
      uint64_t start;
    };
    std::vector<Kernel> replay;
    Ids capture;
    std::vector<uint64_t> clock(streams);
    while (capture.size() < 150) {
      const uint32_t stream = random() % streams;
      for (uint32_t left = 1 + random() % 12; left > 0; --left) {
        clock[stream] += 1 + random() % 9;
        const uint32_t token = random() % names;
        replay.push_back({token, static_cast<uint32_t>(capture.size()), stream,
                          clock[stream]});
        capture.push_back(token);
      }
    }
    std::stable_sort(
        replay.begin(), replay.end(),
        [](const Kernel& a, const Kernel& b) { return a.start < b.start; });
    Ids tokens;
    std::vector<uint32_t> lanes;
    for (const Kernel& kernel : replay) {
      tokens.push_back(kernel.token);
      lanes.push_back(kernel.stream);
    }
    const auto matches = Matches(capture, tokens, lanes);
    for (size_t j = 0; j < matches.size(); ++j) {
      ++kernels;
      if (ConfidenceOf(matches[j].level) != Confidence::kFact) continue;
      ++facts;
      EXPECT_EQ(matches[j].partner, replay[j].place)
          << "seed " << seed << " kernel " << j;
    }
  }
  RecordProperty("facts", static_cast<int>(facts));
  EXPECT_GT(facts * 2, kernels);
}

// Sequences of a model with planted noise: what is called a fact is right.
TEST(Align, FactsAreRightUnderNoise) {
  size_t facts = 0;
  size_t right_facts = 0;
  size_t kernels = 0;
  size_t right = 0;
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    std::mt19937 random(seed);
    Ids capture;
    for (int layer = 0; layer < 24; ++layer) {
      for (uint32_t k = 0; k < 18; ++k)
        capture.push_back(k < 14 ? k : 20 + k + (layer % 2) * 10);
    }
    Ids replay;
    std::vector<uint32_t> truth;
    for (uint32_t i = 0; i < capture.size(); ++i) {
      if (random() % 100 < 5) {  // inserted, from somewhere else
        replay.push_back(1000 + random() % 3);
        truth.push_back(Match::kNoPartner);
      }
      if (random() % 100 < 5) continue;  // missing
      replay.push_back(capture[i]);
      truth.push_back(i);
    }
    for (size_t i = 0; i + 1 < replay.size(); ++i) {
      if (random() % 100 < 5 && replay[i] != replay[i + 1]) {
        std::swap(replay[i], replay[i + 1]);
        std::swap(truth[i], truth[i + 1]);
      }
    }
    const auto matches = Matches(capture, replay);
    for (size_t j = 0; j < matches.size(); ++j) {
      if (truth[j] == Match::kNoPartner) continue;
      ++kernels;
      right += matches[j].partner == truth[j];
      if (ConfidenceOf(matches[j].level) != Confidence::kFact) continue;
      ++facts;
      right_facts += matches[j].partner == truth[j];
    }
  }
  EXPECT_GE(static_cast<double>(right_facts),
            0.994 * static_cast<double>(facts));
  EXPECT_GE(static_cast<double>(right), 0.955 * static_cast<double>(kernels));
}

TEST(Align, UnrelatedSequencesMatchNothing) {
  const auto matches = Matches({1, 6, 11, 16}, {2, 7, 3, 8, 4});
  for (const Match& match : matches) EXPECT_EQ(match.level, Level::kNone);
}

TEST(Align, EmptySequencesAreFine) {
  EXPECT_TRUE(Matches({1, 2}, {}).empty());
  EXPECT_EQ(Matches({}, {1})[0].level, Level::kNone);
}

}  // namespace
}  // namespace lamina::cudagraph
