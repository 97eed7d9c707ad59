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
#include <span>

namespace lamina::runs {
namespace {

constexpr double kAssumedRunNoise = 0.005;
// A unit at an edge of the trace with fewer of the usual events was cut.
constexpr double kWholeShare = 0.97;
// Contexts of a pair differ by at most this share.
constexpr double kCaliper = 0.05;
// Pairs are looked for among as many units of a side.
constexpr size_t kMostPaired = 2000;

using UnitList = std::vector<const Unit*>;

// --- what is left out ---

void LeaveOutEdges(std::span<const Unit> units, size_t side,
                   std::vector<LeftOut>& out) {
  std::map<Phase, std::vector<double>> events;
  for (const Unit& unit : units)
    events[unit.phase].push_back(static_cast<double>(unit.events));
  for (const Unit* edge : {&units.front(), &units.back()}) {
    const auto& usual = events[edge->phase];
    if (usual.size() <= 2 ||
        static_cast<double>(edge->events) >= kWholeShare * Median(usual))
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
  constexpr size_t kMostOthers = 2000;  // of more, evenly taken
  const size_t most = std::max(kMost, units.size() / 10);
  for (size_t i = 0; i < std::min(most, units.size()); ++i) {
    std::vector<double> others;
    const size_t step = 1 + (units.size() - i - 1) / kMostOthers;
    for (size_t j = i + 1; j < units.size(); j += step)
      others.push_back(static_cast<double>(units[j]->unit_ns));
    if (others.size() < kLeastOthers ||
        static_cast<double>(units[i]->unit_ns) <=
            kFactor * Median(others) + kDeviations * RobustDeviation(others))
      return;
    out.push_back({side, units[i], "warmup"});
  }
}

UnitList Kept(const Units& of_side, size_t side, std::vector<LeftOut>& out) {
  const std::vector<Unit>& units = of_side.units;
  if (units.empty()) return {};
  if (of_side.settled) {
    UnitList kept;
    for (const Unit& unit : units) {
      if (unit.left_out.empty()) {
        kept.push_back(&unit);
      } else {
        out.push_back({side, &unit, unit.left_out});
      }
    }
    return kept;
  }
  std::vector<LeftOut> own;
  std::vector<bool> left(units.size());
  const auto mark = [&] {
    for (const LeftOut& one : own) left[one.unit->number] = true;
  };
  // Each recording has edges and a warm-up.
  for (size_t from = 0; from < units.size();) {
    size_t to = from;
    while (to < units.size() && units[to].recording == units[from].recording)
      ++to;
    const std::span recording(units.data() + from, to - from);
    LeaveOutEdges(recording, side, own);
    mark();
    std::map<Phase, UnitList> phases;
    for (const Unit& unit : recording) {
      if (!left[unit.number]) phases[unit.phase].push_back(&unit);
    }
    for (const auto& [phase, of_phase] : phases)
      LeaveOutWarmup(of_phase, side, own);
    from = to;
  }
  mark();
  UnitList kept;
  for (const Unit& unit : units) {
    if (!left[unit.number] && unit.unit_ns > 0 && unit.kernel_ns > 0)
      kept.push_back(&unit);
  }
  out.insert(out.end(), own.begin(), own.end());
  return kept;
}

// --- classes ---

std::vector<MatchedClass> FindClasses(const PerSide<UnitList>& kept) {
  std::map<std::pair<Phase, std::string>, PerSide<UnitList>> classes;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    for (const Unit* unit : kept[side]) {
      classes[{unit->phase, unit->load_name}][side].push_back(unit);
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

double ContextOf(const Unit* unit) {
  return static_cast<double>(*unit->load.generating_context);
}

// Of very many units as many as can be paired, evenly taken by context; the
// others are left out.
UnitList SampleByContext(UnitList units, size_t side,
                         std::vector<LeftOut>& out) {
  std::stable_sort(
      units.begin(), units.end(),
      [](const Unit* x, const Unit* y) { return ContextOf(x) < ContextOf(y); });
  if (units.size() <= kMostPaired) return units;
  UnitList taken;
  for (size_t i = 0; i < units.size(); ++i) {
    const size_t next = taken.size() * units.size() / kMostPaired;
    if (i == next && taken.size() < kMostPaired) {
      taken.push_back(units[i]);
    } else {
      out.push_back({side, units[i], "sample"});
    }
  }
  return taken;
}

// Pairs of least sum of distances in order of context; one that is left out
// costs half a caliper. Each side is in order of context.
PerSide<UnitList> PairByContext(const PerSide<UnitList>& units) {
  const auto context = &ContextOf;
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

// Times of units against the median of their recording.
std::vector<double> WithinRecordings(const UnitList& units,
                                     const std::vector<double>& times) {
  std::map<size_t, std::vector<double>> of_recording;
  for (size_t i = 0; i < units.size(); ++i)
    of_recording[units[i]->recording].push_back(times[i]);
  if (of_recording.size() < 2) return times;
  std::map<size_t, double> medians;
  for (auto& [recording, own] : of_recording)
    medians[recording] = Median(std::move(own));
  std::vector<double> out = times;
  for (size_t i = 0; i < units.size(); ++i)
    out[i] /= medians[units[i]->recording];
  return out;
}

// How two measures of the units of a class differ.
struct Changed {
  Shift change, gate;
  double serial = 1, detectable = 0;
  PerSide<double> spread{};
};

Changed ChangeOf(const MatchedClass& one, Measure measure,
                 const Options& options, double gate_level) {
  Changed out;
  const double noise = NoiseOfSides(options);
  const PerSide<std::vector<double>> times = {TimesOf(one.matched[0], measure),
                                              TimesOf(one.matched[1], measure)};
  for (const size_t side : {size_t{0}, size_t{1}})
    out.spread[side] = RobustDeviation(LogsOf(times[side]));
  if (!one.paired) {
    for (const size_t side : {size_t{0}, size_t{1}}) {
      out.serial = std::max(out.serial, SerialFactor(WithinRecordings(
                                            one.matched[side], times[side])));
    }
    const auto shift = [&](double level) {
      return Widen(UnpairedShift(times[0], times[1], level), out.serial, noise,
                   level);
    };
    out.change = shift(options.level);
    out.gate = shift(gate_level);
    out.detectable =
        DetectableShift(std::max(out.spread[0], out.spread[1]), times[0].size(),
                        times[1].size(), noise, options.level);
    return out;
  }
  const double slope = ContextSlope(one.matched[0], measure);
  std::vector<double> ratios;
  for (size_t i = 0; i < times[0].size(); ++i) {
    const auto tokens =
        static_cast<double>(*one.matched[1][i]->load.generating_context -
                            *one.matched[0][i]->load.generating_context);
    ratios.push_back(
        std::log(std::max(1.0, times[1][i] - slope * tokens) / times[0][i]));
  }
  out.serial = SerialFactor(ratios);
  const auto shift = [&](double level) {
    return Widen(PairedShift(ratios, level), out.serial, noise, level);
  };
  out.change = shift(options.level);
  out.gate = shift(gate_level);
  out.detectable = DetectableShift(RobustDeviation(ratios), ratios.size(),
                                   1'000'000'000, noise, options.level);
  return out;
}

// A collective works while it waits for other ranks.
bool WaitsForRanks(const MatchedClass& one) {
  const auto waits = [](const Unit* unit) { return unit->communication; };
  return std::any_of(one.matched[0].begin(), one.matched[0].end(), waits) ||
         std::any_of(one.matched[1].begin(), one.matched[1].end(), waits);
}

void FindChange(const Options& options, double gate_level, MatchedClass& one) {
  const Changed changed = ChangeOf(one, options.measure, options, gate_level);
  one.change = changed.change;
  one.gate = changed.gate;
  one.serial = changed.serial;
  one.detectable = changed.detectable;
  one.spread = changed.spread;
  if (options.measure != Measure::kUnit || WaitsForRanks(one)) return;
  const Changed busy = ChangeOf(one, Measure::kBusy, options, gate_level);
  one.busy = busy.change;
  one.busy_gate = busy.gate;
}

// --- phases ---

double MeanOf(const UnitList& units, Measure measure) {
  double sum = 0;
  for (const Unit* unit : units)
    sum += static_cast<double>(unit->Time(measure));
  return sum / static_cast<double>(units.size());
}

// `of(class)` -> the shift of a class.
template <class Of>
Shift Join(const MatchedPhase& phase, const Of& of) {
  Shift out;
  double known = 0;
  for (const MatchedClass* one : phase.classes) {
    out.estimate += one->share / phase.share * of(*one).estimate;
    if (of(*one).low) known += one->share;
  }
  if (known == 0) return out;
  double below = 0, above = 0;
  for (const MatchedClass* one : phase.classes) {
    const Shift& own = of(*one);
    if (!own.low) continue;
    const double weight = one->share / known;
    below += std::pow(weight * (own.estimate - *own.low), 2);
    above += std::pow(weight * (*own.high - own.estimate), 2);
  }
  out.low = out.estimate - std::sqrt(below);
  out.high = out.estimate + std::sqrt(above);
  return out;
}

// Time of the units of each side, in all and by phase.
struct Times {
  explicit Times(const PerSide<UnitList>& kept) {
    for (const size_t side : {size_t{0}, size_t{1}}) {
      for (const Unit* unit : kept[side]) {
        all[side] += static_cast<double>(unit->unit_ns);
        of_phase[unit->phase][side] += static_cast<double>(unit->unit_ns);
      }
    }
  }
  double Share(Phase phase, size_t side) const {
    return of_phase.at(phase)[side] / all[side];
  }
  PerSide<double> all{};
  std::map<Phase, PerSide<double>> of_phase;
};

void FindPhases(const Times& times, const Options& options, Matching& out) {
  std::map<Phase, MatchedPhase> phases;
  for (const MatchedClass& one : out.classes) {
    MatchedPhase& phase = phases[one.phase];
    phase.phase = one.phase;
    phase.classes.push_back(&one);
    phase.share += one.share;
  }
  for (auto& [kind, phase] : phases) {
    for (const MatchedClass* one : phase.classes) {
      const double weight = WeightOf(phase, *one);
      for (const size_t side : {size_t{0}, size_t{1}}) {
        if (one->matched[side].empty()) continue;
        phase.mean_ns[side] +=
            weight * MeanOf(one->matched[side], options.measure);
        phase.busy_ns[side] +=
            weight * MeanOf(one->matched[side], Measure::kBusy);
        phase.units[side] += one->matched[side].size();
      }
      phase.detectable += one->share / phase.share * one->detectable;
    }
    phase.change =
        Join(phase, [](const MatchedClass& one) { return one.change; });
    phase.gate = Join(phase, [](const MatchedClass& one) { return one.gate; });
    if (std::all_of(phase.classes.begin(), phase.classes.end(),
                    [](const MatchedClass* one) { return one->busy; })) {
      phase.busy =
          Join(phase, [](const MatchedClass& one) { return *one.busy; });
      phase.busy_gate =
          Join(phase, [](const MatchedClass& one) { return *one.busy_gate; });
    }
    for (const size_t side : {size_t{0}, size_t{1}})
      phase.share_of_side[side] = times.Share(kind, side);
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
                             x.busy_ns == y.busy_ns && x.events == y.events;
                    });
}

}  // namespace

double RunNoise(const Options& options) {
  return options.run_noise.value_or(kAssumedRunNoise);
}

double NoiseOfSides(const Options& options) {
  return RunNoise(options) * options.noise_factor;
}

void MeasureNoise(const PerSide<Units>& sides, Options& options) {
  double squares = 0, share = 0;
  size_t freedom = 0;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    // Of each recording the mean of the logarithms of its classes' medians,
    // over the classes that all have.
    std::vector<LeftOut> left;
    std::map<std::pair<Phase, std::string>,
             std::map<size_t, std::vector<double>>>
        classes;
    std::set<size_t> recordings;
    for (const Unit* unit : Kept(sides[side], side, left)) {
      recordings.insert(unit->recording);
      classes[{unit->phase, unit->load_name}][unit->recording].push_back(
          std::log(std::max<double>(
              1, static_cast<double>(unit->Time(options.measure)))));
    }
    if (recordings.empty()) return;
    share += 1 / static_cast<double>(recordings.size());
    std::map<size_t, double> sums;
    for (auto& [key, of_recording] : classes) {
      if (of_recording.size() < recordings.size()) continue;
      for (auto& [recording, times] : of_recording)
        sums[recording] += Median(std::move(times));
    }
    if (sums.size() < 2) continue;
    const auto common = static_cast<double>(
        std::count_if(classes.begin(), classes.end(), [&](const auto& one) {
          return one.second.size() == recordings.size();
        }));
    double mean = 0;
    for (const auto& [recording, sum] : sums)
      mean += sum / static_cast<double>(sums.size());
    for (const auto& [recording, sum] : sums)
      squares += std::pow((sum - mean) / common, 2);
    freedom += sums.size() - 1;
  }
  options.noise_factor = std::sqrt(share / 2);
  if (options.run_noise || freedom == 0) return;
  options.run_noise = std::sqrt(squares / static_cast<double>(freedom));
  options.noise_from = Options::NoiseFrom::kRecordings;
  // What few recordings say of the noise is itself doubtful.
  const double p = 0.5 + options.level / 2;
  options.noise_factor *= StudentQuantile(p, freedom) / NormalQuantile(p);
}

double WeightOf(const MatchedPhase& phase, const MatchedClass& one) {
  double units = 0;
  for (const MatchedClass* other : phase.classes)
    units += static_cast<double>(other->units[0]);
  return static_cast<double>(one.units[0]) / units;
}

namespace {

// Leaves the units of a class that meet; false: none do.
bool Meet(MatchedClass& one, std::vector<LeftOut>& out) {
  PerSide<UnitList> all = one.matched;
  if (one.phase == Phase::kDecode && !all[0].empty() && !all[1].empty() &&
      HasContext(all[0]) && HasContext(all[1])) {
    for (const size_t side : {size_t{0}, size_t{1}})
      all[side] = SampleByContext(std::move(all[side]), side, out);
    one.matched = PairByContext(all);
    one.paired = true;
  }
  const bool meets = !one.matched[0].empty() && !one.matched[1].empty();
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const std::set<const Unit*> taken(one.matched[side].begin(),
                                      one.matched[side].end());
    for (const Unit* unit : all[side]) {
      if (!meets || !taken.contains(unit))
        out.push_back({side, unit, "no_partner"});
    }
  }
  return meets;
}

}  // namespace

Matching ClassesOf(const Units& units, Measure measure) {
  Matching out;
  PerSide<UnitList> kept;
  kept[0] = Kept(units, 0, out.left_out);
  out.classes = FindClasses(kept);
  const Times times(kept);
  for (MatchedClass& one : out.classes) {
    for (const Unit* unit : one.matched[0])
      one.share += static_cast<double>(unit->unit_ns) / times.all[0];
  }
  Options options;
  options.measure = measure;
  FindPhases(times, options, out);
  return out;
}

Matching MatchUnits(const PerSide<Units>& sides, const Options& options) {
  Matching out;
  PerSide<UnitList> kept;
  for (const size_t side : {size_t{0}, size_t{1}})
    kept[side] = Kept(sides[side], side, out.left_out);
  const Times times(kept);
  const auto looked_at = std::count_if(
      times.of_phase.begin(), times.of_phase.end(), [&](const auto& phase) {
        return times.Share(phase.first, 0) >= kGateShare ||
               times.Share(phase.first, 1) >= kGateShare;
      });
  // Bonferroni's share of the risk for each phase that the gate looks at.
  const double gate_level =
      1 - (1 - options.level) /
              static_cast<double>(std::max<int64_t>(1, looked_at));
  for (MatchedClass& one : FindClasses(kept)) {
    double own = 0;
    for (const Unit* unit : one.matched[0])
      own += static_cast<double>(unit->unit_ns);
    if (!Meet(one, out.left_out)) continue;
    one.share = own / times.all[0];
    out.share += one.share;
    FindChange(options, gate_level, one);
    out.classes.push_back(std::move(one));
  }
  FindPhases(times, options, out);
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
