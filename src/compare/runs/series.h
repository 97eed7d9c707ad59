// SPDX-License-Identifier: Apache-2.0
//
// A series of runs of one program, one time each, in order: how much runs
// differ anyway, and where the program changed. Nothing is random.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compare/runs/statistics.h"

namespace lamina::runs {

// The standard deviation of one value of a series of logarithms, from
// neighbouring differences, each capped at four times their median: a change or
// a drift hardly moves it. Nothing below 4 values.
std::optional<double> SeriesNoise(std::span<const double> logs);

enum class SeriesKind : uint8_t {
  kUnknown,  // too few runs
  kNone,
  kStep,   // one change
  kSteps,  // several
  kDrift,  // a slope
};
std::string_view SeriesKindName(SeriesKind kind);

struct SeriesChange {
  size_t index = 0;  // of the first run after it
  Shift shift;       // medians of both segments; interval at 95 %
};

struct SeriesModel {
  SeriesKind kind = SeriesKind::kUnknown;
  std::vector<SeriesChange> changes;  // in order
  double slope = 0;                   // of logarithms, per run, of a drift
  std::vector<size_t> single;  // runs far from all around them: no change
  std::optional<double> noise;
  // The least change in the middle of the series that would have been found
  // with a power of 80 %.
  std::optional<double> detectable;
};

// The fewest runs between two changes.
inline constexpr size_t kShortestSegment = 3;
// Fewer runs have no model.
inline constexpr size_t kFewestRuns = 2 * kShortestSegment + 2;

// Which of these explains the series best: a constant, a slope, or 1 to 4
// changes, by n log(RSS / n) with a penalty of 12 for a slope and 15 for each
// change. With 1 % of noise, 12 to 60 runs: a constant is called something else
// in less than 1 % of series. Changes below `min_effect` are none. Up to 600
// runs all places are tried together; of more runs those where the level before
// and behind differs most, and each is then moved to its best place. Times must
// be above 0. Cost: n log n.
SeriesModel FindChanges(std::span<const double> times, double min_effect);

}  // namespace lamina::runs
