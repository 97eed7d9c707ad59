// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/variants.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

namespace lamina::analysis::layers {
namespace {

using Places = std::vector<std::vector<uint32_t>>;

// Two-digit numbers: the first digit is the family.
Places Align(const std::vector<std::vector<uint64_t>>& names) {
  std::vector<std::vector<Element>> sequences;
  for (const auto& list : names) {
    auto& sequence = sequences.emplace_back();
    for (const uint64_t name : list) sequence.push_back({name, name / 10});
  }
  return AlignPlaces(sequences);
}

TEST(AlignPlaces, EqualNamesShareAPlace) {
  // A dense and an expert layer: the same begin and end.
  EXPECT_EQ(Align({{10, 20, 30, 90}, {10, 50, 60, 70, 90}}),
            (Places{{0, 1, 2, 6}, {0, 3, 4, 5, 6}}));
}

TEST(AlignPlaces, WhatOneLacksIsAGap) {
  EXPECT_EQ(Align({{10, 20, 30}, {10, 30}, {20, 30, 40}}),
            (Places{{0, 1, 2}, {0, 2}, {1, 2, 3}}));
  EXPECT_EQ(Align({{10, 30}, {10, 20, 30}, {10, 20, 20, 30}}),
            (Places{{0, 3}, {0, 1, 3}, {0, 1, 2, 3}}));
  EXPECT_EQ(Align({{}, {40}, {}}), (Places{{}, {0}, {}}));
  EXPECT_TRUE(AlignPlaces({}).empty());
}

TEST(AlignPlaces, OfOneFamilyWhereNamesDiffer) {
  // A prefill and a decode layer: other kernels for the same matrices.
  EXPECT_EQ(Align({{10, 21, 31, 22, 90}, {10, 25, 35, 36, 26, 90}}),
            (Places{{0, 1, 2, 4, 5}, {0, 1, 2, 3, 4, 5}}));
  // Equal names come first, though families alone would join more.
  EXPECT_EQ(Align({{21, 22}, {22, 23}}), (Places{{0, 1}, {1, 2}}));
}

TEST(AlignPlaces, PlacesAscendAndHoldOneFamily) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::vector<uint64_t>> sequences(1 + random() % 5);
    for (auto& sequence : sequences) {
      sequence.resize(random() % 12);
      for (uint64_t& name : sequence) name = 10 * (random() % 3) + random() % 2;
    }
    const Places places = Align(sequences);
    std::map<uint32_t, uint64_t> family_at;
    ASSERT_EQ(places.size(), sequences.size());
    for (size_t i = 0; i < places.size(); ++i) {
      ASSERT_EQ(places[i].size(), sequences[i].size());
      for (size_t k = 0; k < places[i].size(); ++k) {
        if (k > 0) {
          EXPECT_LT(places[i][k - 1], places[i][k]);
        }
        const auto [it, is_new] =
            family_at.try_emplace(places[i][k], sequences[i][k] / 10);
        EXPECT_EQ(it->second, sequences[i][k] / 10);
      }
    }
    // No place is empty, so they are numbered without holes.
    if (!family_at.empty()) {
      EXPECT_EQ(family_at.rbegin()->first + 1, family_at.size());
    }
  }
}

}  // namespace
}  // namespace lamina::analysis::layers
