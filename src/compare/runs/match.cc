// SPDX-License-Identifier: Apache-2.0
//
// Input: the units of both sides. Output: classes of units of equal load with
// their change. Decodes with known context meet in pairs of near context, by
// the cheapest alignment in order of context; all others meet all of their
// class. Cost: quadratic in the units of one class.
#include "compare/runs/match.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <set>

namespace lamina::runs {
namespace {

constexpr double kAssumedRunNoise = 0.005;
// A unit at an edge of the trace with fewer of the usual events was cut.
constexpr double kWholeShare = 0.97;
// Contexts of a pair differ by at most this share.
constexpr double kCaliper = 0.05;
// A gate looks at phases with this share of the time of a side.
constexpr double kGateShare = 0.05;

using UnitList = std::vector<const Unit*>;

// --- what is left out ---

void LeaveOutEdges(const std::vector<Unit>& units, size_t side,
                   std::vector<LeftOut>& out) {
  std::map<Phase, std::vector<double>> events;
  for (const Unit& unit : units)
    events[unit.phase].push_back(static_cast<double>(unit.work.size()));
  for (const Unit* edge : {&units.front(), &units.back()}) {
    const auto& usual = events[edge->phase];
    if (usual.size() <= 2 ||
        static_cast<double>(edge->work.size()) >= kWholeShare * Median(usual))
      continue;
    out.push_back({side, edge,
                   edge == &units.front() ? "partial_first" : "partial_last"});
  }
}

// Leading units that take clearly longer than all that follow.
void LeaveOutWarmup(const UnitList& units, size_t side,
                    std::vector<LeftOut>& out) {
  constexpr size_t kMost = 3, kLeastOthers = 5;
  constexpr double kFactor = 1.08, kDeviations = 5;
  const size_t most = std::max(kMost, units.size() / 10);
  for (size_t i = 0; i < std::min(most, units.size()); ++i) {
    std::vector<double> others;
    for (size_t j = i + 1; j < units.size(); ++j)
      others.push_back(static_cast<double>(units[j]->unit_ns));
    if (others.size() < kLeastOthers ||
        static_cast<double>(units[i]->unit_ns) <=
            kFactor * Median(others) + kDeviations * RobustDeviation(others))
      return;
    out.push_back({side, units[i], "warmup"});
  }
}

UnitList Kept(const std::vector<Unit>& units, size_t side,
              std::vector<LeftOut>& out) {
  if (units.empty()) return {};
  LeaveOutEdges(units, side, out);
  const auto left = [&](const Unit* unit) {
    return std::any_of(out.begin(), out.end(), [&](const LeftOut& l) {
      return l.side == side && l.unit == unit;
    });
  };
  std::map<Phase, UnitList> phases;
  for (const Unit& unit : units) {
    if (!left(&unit)) phases[unit.phase].push_back(&unit);
  }
  for (const auto& [phase, own] : phases) LeaveOutWarmup(own, side, out);
  UnitList kept;
  for (const Unit& unit : units) {
    if (!left(&unit) && unit.unit_ns > 0 && unit.kernel_ns > 0)
      kept.push_back(&unit);
  }
  return kept;
}

// --- classes ---

std::string Counted(const std::optional<int64_t>& n, std::string_view what) {
  return n ? fmt::format("{} {}", *n, what) : std::string();
}

// Equal for units that may be compared; empty: the load is not known.
std::string LoadName(const Unit& unit) {
  std::vector<std::string> parts;
  const auto add = [&](std::string text) {
    if (!text.empty()) parts.push_back(std::move(text));
  };
  switch (unit.phase) {
    case Phase::kTrain:
    case Phase::kEval:
      add(Counted(unit.tokens, "tokens"));
      if (unit.optimizer) add("optimizer");
      if (unit.communication) add("communication");
      if (parts.empty()) add("step");
      break;
    case Phase::kDecode:
      add(Counted(unit.load.generating, "requests"));
      break;
    case Phase::kPrefill:
    case Phase::kMixed:
      add(Counted(unit.load.context_requests, "prompts"));
      if (unit.load.context_tokens) {
        const int64_t from = *unit.load.context_tokens / 256 * 256;
        add(fmt::format("{} to {} tokens", from, from + 255));
      }
      if (unit.phase == Phase::kMixed)
        add(Counted(unit.load.generating, "generating"));
      break;
    case Phase::kPass:
      break;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Kernels of a unit by family, for units whose load is not known.
using FamilyCounts = std::vector<int64_t>;
FamilyCounts FamiliesOf(const Unit& unit) {
  const Context& context = *unit.context;
  FamilyCounts counts(context.catalog.families().size(), 0);
  for (const SliceId s : unit.work) ++counts[context.device.family(s)];
  return counts;
}

std::string KernelsName(const FamilyCounts& counts) {
  int64_t all = 0;
  uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (const int64_t n : counts) {
    all += n;
    hash = (hash ^ static_cast<uint64_t>(n)) * 1099511628211u;
  }
  return fmt::format("{} kernels, kind {:04x}", all, hash & 0xffff);
}

std::vector<MatchedClass> FindClasses(const PerSide<UnitList>& kept) {
  std::map<std::pair<Phase, std::string>, PerSide<UnitList>> classes;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    for (const Unit* unit : kept[side]) {
      std::string name = LoadName(*unit);
      if (name.empty()) name = KernelsName(FamiliesOf(*unit));
      classes[{unit->phase, std::move(name)}][side].push_back(unit);
    }
  }
  std::vector<MatchedClass> out;
  for (auto& [key, units] : classes) {
    MatchedClass& one = out.emplace_back();
    one.phase = key.first;
    one.name = key.second;
    one.units = {units[0].size(), units[1].size()};
    one.matched = std::move(units);
  }
  return out;
}

// --- pairs by context ---

// Pairs of least sum of distances in order of context; one that is left out
// costs half a caliper.
PerSide<UnitList> PairByContext(PerSide<UnitList> units) {
  const auto context = [](const Unit* unit) {
    return static_cast<double>(*unit->load.generating_context);
  };
  for (UnitList& side : units) {
    std::stable_sort(
        side.begin(), side.end(),
        [&](const Unit* x, const Unit* y) { return context(x) < context(y); });
  }
  const auto& [a, b] = units;
  const size_t n = a.size(), m = b.size();
  const auto cost = [&](size_t i, size_t j) {
    return std::abs(context(a[i]) - context(b[j])) / (kCaliper * context(a[i]));
  };
  std::vector<double> least((n + 1) * (m + 1), 0);
  const auto at = [&](size_t i, size_t j) -> double& {
    return least[i * (m + 1) + j];
  };
  for (size_t i = n + 1; i-- > 0;) {
    for (size_t j = m + 1; j-- > 0;) {
      if (i == n || j == m) {
        at(i, j) = 0.5 * static_cast<double>(n - i + m - j);
        continue;
      }
      at(i, j) = 0.5 + std::min(at(i + 1, j), at(i, j + 1));
      const double own = cost(i, j);
      if (own <= 1) at(i, j) = std::min(at(i, j), at(i + 1, j + 1) + own);
    }
  }
  PerSide<UnitList> pairs;
  for (size_t i = 0, j = 0; i < n && j < m;) {
    const double own = cost(i, j);
    if (own <= 1 && at(i, j) == at(i + 1, j + 1) + own) {
      pairs[0].push_back(a[i++]);
      pairs[1].push_back(b[j++]);
    } else if (at(i, j) == 0.5 + at(i + 1, j)) {
      ++i;
    } else {
      ++j;
    }
  }
  return pairs;
}

bool HasContext(const UnitList& units) {
  return std::all_of(units.begin(), units.end(), [](const Unit* unit) {
    return unit->load.generating_context.value_or(0) > 0;
  });
}

// Time per token of context, of A: the Theil-Sen slope, never negative.
double ContextSlope(const UnitList& units, Measure measure) {
  constexpr size_t kLeast = 6, kMost = 500;
  std::vector<double> slopes;
  const size_t step = std::max<size_t>(1, units.size() / kMost);
  for (size_t i = 0; i < units.size(); i += step) {
    for (size_t j = i + step; j < units.size(); j += step) {
      const auto tokens =
          static_cast<double>(*units[j]->load.generating_context -
                              *units[i]->load.generating_context);
      if (tokens != 0) {
        slopes.push_back(static_cast<double>(units[j]->Time(measure) -
                                             units[i]->Time(measure)) /
                         tokens);
      }
    }
  }
  return slopes.size() >= kLeast ? std::max(0.0, Median(std::move(slopes))) : 0;
}

// --- the change of a class ---

std::vector<double> TimesOf(const UnitList& units, Measure measure) {
  std::vector<double> times;
  for (const Unit* unit : units)
    times.push_back(
        std::max<double>(1, static_cast<double>(unit->Time(measure))));
  return times;
}

std::vector<double> LogsOf(std::vector<double> values) {
  for (double& v : values) v = std::log(v);
  return values;
}

void FindChange(const Options& options, double gate_level, MatchedClass& one) {
  const double noise = RunNoise(options);
  const PerSide<std::vector<double>> times = {
      TimesOf(one.matched[0], options.measure),
      TimesOf(one.matched[1], options.measure)};
  for (const size_t side : {size_t{0}, size_t{1}})
    one.spread[side] = RobustDeviation(LogsOf(times[side]));
  if (!one.paired) {
    one.serial = std::max(SerialFactor(times[0]), SerialFactor(times[1]));
    const auto shift = [&](double level) {
      return Widen(UnpairedShift(times[0], times[1], level), one.serial, noise,
                   level);
    };
    one.change = shift(options.level);
    one.gate = shift(gate_level);
    one.detectable =
        DetectableShift(std::max(one.spread[0], one.spread[1]), times[0].size(),
                        times[1].size(), noise, options.level);
    return;
  }
  const double slope = ContextSlope(one.matched[0], options.measure);
  std::vector<double> ratios;
  for (size_t i = 0; i < times[0].size(); ++i) {
    const auto tokens =
        static_cast<double>(*one.matched[1][i]->load.generating_context -
                            *one.matched[0][i]->load.generating_context);
    ratios.push_back(
        std::log(std::max(1.0, times[1][i] - slope * tokens) / times[0][i]));
  }
  one.serial = SerialFactor(ratios);
  const auto shift = [&](double level) {
    return Widen(PairedShift(ratios, level), one.serial, noise, level);
  };
  one.change = shift(options.level);
  one.gate = shift(gate_level);
  one.detectable = DetectableShift(RobustDeviation(ratios), ratios.size(),
                                   1'000'000'000, noise, options.level);
}

// --- phases ---

double MeanOf(const UnitList& units, Measure measure) {
  double sum = 0;
  for (const Unit* unit : units)
    sum += static_cast<double>(unit->Time(measure));
  return sum / static_cast<double>(units.size());
}

Shift Join(const MatchedPhase& phase, Shift MatchedClass::*shift) {
  Shift out;
  double known = 0;
  for (const MatchedClass* one : phase.classes) {
    out.estimate += one->share / phase.share * (one->*shift).estimate;
    if ((one->*shift).low) known += one->share;
  }
  if (known == 0) return out;
  double below = 0, above = 0;
  for (const MatchedClass* one : phase.classes) {
    const Shift& own = one->*shift;
    if (!own.low) continue;
    const double weight = one->share / known;
    below += std::pow(weight * (own.estimate - *own.low), 2);
    above += std::pow(weight * (*own.high - own.estimate), 2);
  }
  out.low = out.estimate - std::sqrt(below);
  out.high = out.estimate + std::sqrt(above);
  return out;
}

void FindPhases(const PerSide<UnitList>& kept, const Options& options,
                Matching& out) {
  PerSide<double> all{};
  std::map<Phase, PerSide<double>> times;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    for (const Unit* unit : kept[side]) {
      all[side] += static_cast<double>(unit->unit_ns);
      times[unit->phase][side] += static_cast<double>(unit->unit_ns);
    }
  }
  std::map<Phase, MatchedPhase> phases;
  for (const MatchedClass& one : out.classes) {
    MatchedPhase& phase = phases[one.phase];
    phase.phase = one.phase;
    phase.classes.push_back(&one);
    phase.share += one.share;
  }
  for (auto& [kind, phase] : phases) {
    double units = 0;
    for (const MatchedClass* one : phase.classes)
      units += static_cast<double>(one->units[0]);
    for (const MatchedClass* one : phase.classes) {
      const double weight = static_cast<double>(one->units[0]) / units;
      for (const size_t side : {size_t{0}, size_t{1}}) {
        phase.mean_ns[side] +=
            weight * MeanOf(one->matched[side], options.measure);
        phase.units[side] += one->matched[side].size();
      }
      phase.detectable += one->share / phase.share * one->detectable;
    }
    phase.change = Join(phase, &MatchedClass::change);
    phase.gate = Join(phase, &MatchedClass::gate);
    for (const size_t side : {size_t{0}, size_t{1}})
      phase.share_of_side[side] = times[kind][side] / all[side];
    out.phases.push_back(phase);
  }
  std::stable_sort(out.phases.begin(), out.phases.end(),
                   [](const MatchedPhase& x, const MatchedPhase& y) {
                     return x.share > y.share;
                   });
}

std::optional<double> PerToken(const PerSide<UnitList>& kept, Measure measure) {
  PerSide<std::vector<double>> times;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    for (const Unit* unit : kept[side]) {
      if (unit->phase == Phase::kTrain && unit->tokens) {
        times[side].push_back(static_cast<double>(unit->Time(measure)) /
                              static_cast<double>(*unit->tokens));
      }
    }
  }
  if (times[0].empty() || times[1].empty()) return std::nullopt;
  return Median(times[1]) / Median(times[0]) - 1;
}

bool AreEqual(const PerSide<Units>& sides) {
  const auto& [a, b] = sides;
  return a.units.size() == b.units.size() &&
         std::equal(a.units.begin(), a.units.end(), b.units.begin(),
                    [](const Unit& x, const Unit& y) {
                      return x.start_ns == y.start_ns &&
                             x.unit_ns == y.unit_ns &&
                             x.kernel_ns == y.kernel_ns &&
                             x.busy_ns == y.busy_ns &&
                             x.work.size() == y.work.size();
                    });
}

}  // namespace

double RunNoise(const Options& options) {
  return options.run_noise.value_or(kAssumedRunNoise);
}

Matching MatchUnits(const PerSide<Units>& sides, const Options& options) {
  Matching out;
  PerSide<UnitList> kept;
  for (const size_t side : {size_t{0}, size_t{1}})
    kept[side] = Kept(sides[side].units, side, out.left_out);
  double all = 0;
  std::map<Phase, PerSide<double>> of_phase;
  PerSide<double> of_side{};
  for (const size_t side : {size_t{0}, size_t{1}}) {
    for (const Unit* unit : kept[side]) {
      of_phase[unit->phase][side] += static_cast<double>(unit->unit_ns);
      of_side[side] += static_cast<double>(unit->unit_ns);
    }
  }
  all = of_side[0];
  size_t looked_at = 0;
  for (const auto& [phase, times] : of_phase) {
    looked_at += times[0] >= kGateShare * of_side[0] ||
                 times[1] >= kGateShare * of_side[1];
  }
  // Bonferroni's share of the risk for each phase that the gate looks at.
  const double gate_level =
      1 -
      (1 - options.level) / static_cast<double>(std::max<size_t>(1, looked_at));
  for (MatchedClass& one : FindClasses(kept)) {
    PerSide<UnitList> rest = one.matched;
    if (one.phase == Phase::kDecode && !one.matched[0].empty() &&
        !one.matched[1].empty() && HasContext(one.matched[0]) &&
        HasContext(one.matched[1])) {
      one.matched = PairByContext(std::move(one.matched));
      one.paired = true;
    }
    const bool meets = !one.matched[0].empty() && !one.matched[1].empty();
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const std::set<const Unit*> taken(one.matched[side].begin(),
                                        one.matched[side].end());
      for (const Unit* unit : rest[side]) {
        if (!meets || !taken.contains(unit))
          out.left_out.push_back({side, unit, "no_partner"});
      }
    }
    if (!meets) continue;
    double own = 0;
    for (const Unit* unit : rest[0]) own += static_cast<double>(unit->unit_ns);
    one.share = own / all;
    out.share += one.share;
    FindChange(options, gate_level, one);
    out.classes.push_back(std::move(one));
  }
  FindPhases(kept, options, out);
  if (out.share < 0.5) out.per_token = PerToken(kept, options.measure);
  out.same_recording = AreEqual(sides);
  std::stable_sort(out.left_out.begin(), out.left_out.end(),
                   [](const LeftOut& x, const LeftOut& y) {
                     return std::pair(x.side, x.unit->number) <
                            std::pair(y.side, y.unit->number);
                   });
  return out;
}

}  // namespace lamina::runs
