// SPDX-License-Identifier: Apache-2.0
//
// Which units of two traces may be compared: those of one class, which had
// equal load, without the edges of a trace and without warm-up.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compare/runs/compare.h"
#include "compare/runs/statistics.h"
#include "compare/runs/units.h"

namespace lamina::runs {

template <class T>
using PerSide = std::array<T, 2>;  // A and B

// A gate looks at phases with this share of the time of a side.
inline constexpr double kGateShare = 0.05;

struct LeftOut {
  size_t side = 0;
  const Unit* unit = nullptr;
  std::string_view reason;
};

// Units of equal load on both sides.
struct MatchedClass {
  Phase phase = Phase::kPass;
  std::string name;         // "batch 16", "4096 tokens, optimizer"
  PerSide<size_t> units{};  // of the class, before matching
  PerSide<std::vector<const Unit*>> matched;
  bool paired = false;  // matched[0][i] meets matched[1][i], by context
  Shift change;         // of logarithms, with an interval at Options::level
  Shift gate;           // the same at the level of the gate
  // The same of the time in which the device worked, where units are measured
  // and their work waits for no other rank.
  std::optional<Shift> busy, busy_gate;
  double serial = 1;
  double detectable = 0;
  PerSide<double> spread{};  // robust deviation of logarithms
  double share = 0;          // of the time of all units of A
};

// A phase: its classes with the mix of A.
struct MatchedPhase {
  Phase phase = Phase::kPass;
  std::vector<const MatchedClass*> classes;
  Shift change, gate;
  std::optional<Shift> busy, busy_gate;  // where all classes have it
  double detectable = 0;
  double share = 0;
  PerSide<double> share_of_side{};
  PerSide<double> mean_ns{};  // per unit, with the mix of A
  PerSide<double> busy_ns{};  // the same
  PerSide<size_t> units{};
};

// The part of a class in its phase, by the units of A.
double WeightOf(const MatchedPhase& phase, const MatchedClass& one);

struct Matching {
  std::vector<MatchedClass> classes;
  std::vector<MatchedPhase> phases;  // by time of A, longest first
  std::vector<LeftOut> left_out;
  // Share of the time of A whose units have partners.
  double share = 0;
  // Of trainings with other tokens per step: the change per token.
  std::optional<double> per_token;
  bool same_recording = false;  // all units are equal to the nanosecond
};

Matching MatchUnits(const PerSide<Units>& sides, const Options& options);
// The classes and phases of one recording, as side A of nothing else; they
// point into `units`.
Matching ClassesOf(const Units& units, Measure measure);

// One standard deviation of a logarithm between recordings of one program:
// given, measured, or assumed.
double RunNoise(const Options& options);
// The same of what is compared: less where a side has several recordings.
double NoiseOfSides(const Options& options);

// Measures the noise where a side has several recordings, and says how much of
// it the comparison has.
void MeasureNoise(const PerSide<Units>& sides, Options& options);

}  // namespace lamina::runs
