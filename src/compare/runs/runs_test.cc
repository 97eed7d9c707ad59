// SPDX-License-Identifier: Apache-2.0
//
// Statistics against slow references, and what units are compared.
#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "compare/runs/match.h"
#include "compare/runs/series.h"
#include "compare/runs/statistics.h"
#include "compare/runs/units.h"

namespace lamina::runs {
namespace {

using analysis::layers::ReadRange;

// The share of all ways to deal ranks 1 to m + n to two sides in which the
// statistic of Mann and Whitney is below k: every way is tried.
double ShareBelow(size_t m, size_t n, size_t k) {
  std::vector<bool> of_b(m + n);
  std::fill(of_b.begin() + static_cast<ptrdiff_t>(m), of_b.end(), true);
  double below = 0, all = 0;
  do {
    size_t u = 0, before = 0;
    for (const bool b : of_b) {
      if (b) {
        u += before;
      } else {
        ++before;
      }
    }
    all += 1;
    below += u < k;
  } while (std::next_permutation(of_b.begin(), of_b.end()));
  return below / all;
}

TEST(Statistics, BoundsOfTwoSamplesAreThoseOfAllOrders) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> time(90, 110);
  for (const auto& [m, n] : {std::pair<size_t, size_t>{4, 4}, {5, 7}, {3, 5}}) {
    std::vector<double> a(m), b(n), differences;
    for (double& x : a) x = time(random);
    for (double& y : b) y = time(random);
    for (const double x : a) {
      for (const double y : b) differences.push_back(std::log(y / x));
    }
    std::sort(differences.begin(), differences.end());
    size_t k = 0;
    while (ShareBelow(m, n, k + 1) <= 0.025) ++k;
    ASSERT_GE(k, 1u);
    const Shift shift = UnpairedShift(a, b, 0.95);
    EXPECT_NEAR(*shift.low, differences[k - 1], 1e-12);
    EXPECT_NEAR(*shift.high, differences[m * n - k], 1e-12);
  }
  // 3 against 3 never reach 95 %.
  const double few[] = {1, 2, 3};
  EXPECT_FALSE(UnpairedShift(few, few, 0.95).low);
}

TEST(Statistics, BoundsOfPairsAreThoseOfAllSigns) {
  const std::vector<double> ratios = {0.011, -0.004, 0.019, 0.032,
                                      0.007, 0.025,  0.014};
  const size_t n = ratios.size();
  size_t k = 0;
  const auto share_below = [&](size_t limit) {
    double below = 0;
    for (uint32_t signs = 0; signs < (1u << n); ++signs) {
      size_t w = 0;
      for (size_t i = 0; i < n; ++i) w += (signs >> i & 1) * (i + 1);
      below += w < limit;
    }
    return below / static_cast<double>(1u << n);
  };
  while (share_below(k + 1) <= 0.025) ++k;
  std::vector<double> means;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i; j < n; ++j) means.push_back((ratios[i] + ratios[j]) / 2);
  }
  std::sort(means.begin(), means.end());
  const Shift shift = PairedShift(ratios, 0.95);
  EXPECT_NEAR(*shift.low, means[k - 1], 1e-12);
  EXPECT_NEAR(*shift.high, means[means.size() - k], 1e-12);
  EXPECT_FALSE(PairedShift(std::vector<double>(5, 0.01), 0.95).low);
}

// Of equal programs a gate at 1 % fails rarely, and 3 % more are mostly seen.
TEST(Statistics, IntervalsHoldWhatTheyPromise) {
  std::mt19937 random(11);
  std::normal_distribution<double> step(0, 0.01), recording(0, 0.005);
  const auto sample = [&](double shift) {
    const double own = recording(random) + shift;
    std::vector<double> times;
    for (int i = 0; i < 20; ++i)
      times.push_back(1e6 * std::exp(own + step(random)));
    return times;
  };
  const auto low = [&](double shift) {
    const auto a = sample(0), b = sample(shift);
    const double serial = std::max(SerialFactor(a), SerialFactor(b));
    return *Widen(UnpairedShift(a, b, 0.95), serial, 0.005, 0.95).low;
  };
  int alarms = 0, seen = 0;
  constexpr int kPairs = 400;
  for (int i = 0; i < kPairs; ++i) {
    alarms += std::expm1(low(0)) > 0.01;
    seen += std::expm1(low(0.03)) > 0.01;
  }
  EXPECT_LE(alarms, kPairs / 100);
  EXPECT_GE(seen, kPairs / 2);
}

TEST(Statistics, StudentQuantiles) {
  for (const auto& [freedom, value] : {std::pair<size_t, double>{1, 12.7062},
                                       {2, 4.3027},
                                       {3, 3.1824},
                                       {4, 2.7764},
                                       {10, 2.2281},
                                       {100, 1.9840}})
    EXPECT_NEAR(StudentQuantile(0.975, freedom), value, 0.02 * value);
}

TEST(Statistics, NormalQuantiles) {
  EXPECT_NEAR(NormalQuantile(0.975), 1.959963984540054, 1e-9);
  EXPECT_NEAR(NormalQuantile(0.8), 0.8416212335729143, 1e-9);
  EXPECT_NEAR(NormalQuantile(0.5), 0, 1e-12);
}

TEST(Statistics, NeighboursThatAreAlikeWiden) {
  std::vector<double> drift(30), noise(30);
  std::iota(drift.begin(), drift.end(), 100.0);
  std::mt19937 random(3);
  for (double& x : noise) x = static_cast<double>(random() % 1000);
  EXPECT_GT(SerialFactor(drift), 3);
  EXPECT_EQ(SerialFactor(noise), 1);
}

TEST(Units, LoadsThatEnginesName) {
  const auto vllm = ReadRange(
      "execute_16_context_0(sq0sk0sqsq0sqsk0)_generation_16(sq16sk16384sqsq16"
      "sqsk16384)");
  ASSERT_TRUE(vllm);
  EXPECT_EQ(vllm->context_requests, 0);
  EXPECT_EQ(vllm->generating, 16);
  EXPECT_EQ(vllm->generating_context, 16384);
  const auto older = ReadRange("execute_context_2(512)_generation_0(0)");
  ASSERT_TRUE(older);
  EXPECT_EQ(older->context_requests, 2);
  EXPECT_EQ(older->context_tokens, 512);
  EXPECT_FALSE(older->generating_context);
  const auto sglang =
      ReadRange("step[DECODE bs=4 g_sq=4 g_sqsq=4 g_sqsk=4100 g_sk=4100]");
  ASSERT_TRUE(sglang);
  EXPECT_EQ(sglang->generating, 4);
  EXPECT_EQ(sglang->generating_context, 4100);
  const auto trtllm =
      ReadRange("[Executor] _forward_step 12: 1 ctx reqs, 7 gen reqs");
  ASSERT_TRUE(trtllm);
  EXPECT_EQ(trtllm->context_requests, 1);
  EXPECT_EQ(trtllm->generating, 7);
  EXPECT_FALSE(ReadRange("ProfilerStep#3"));
  EXPECT_FALSE(ReadRange("execute_query"));
}

Units Decodes(size_t count, int64_t unit_ns) {
  Units out;
  for (size_t i = 0; i < count; ++i) {
    Unit unit;
    unit.number = i;
    unit.phase = Phase::kDecode;
    unit.load.generating = 16;
    unit.load.generating_context = 16'000 + 16 * static_cast<int64_t>(i);
    unit.unit_ns = unit.kernel_ns = unit_ns + static_cast<int64_t>(i % 13);
    out.units.push_back(unit);
  }
  return out;
}

TEST(Match, OfVeryManyDecodesSomeOfEveryContextArePaired) {
  constexpr size_t kCount = 50'000, kPaired = 2'000;
  const PerSide<Units> sides{Decodes(kCount, 40'000), Decodes(kCount, 41'000)};
  const Matching matching = MatchUnits(sides, Options());
  ASSERT_EQ(matching.classes.size(), 1u);
  const MatchedClass& one = matching.classes.front();
  EXPECT_TRUE(one.paired);
  for (const size_t side : {size_t{0}, size_t{1}}) {
    EXPECT_EQ(one.units[side], kCount);
    ASSERT_EQ(one.matched[side].size(), kPaired);
    for (size_t i = 1; i < kPaired; ++i) {
      EXPECT_EQ(one.matched[side][i]->number - one.matched[side][i - 1]->number,
                kCount / kPaired);
    }
  }
  EXPECT_EQ(matching.left_out.size(), 2 * (kCount - kPaired));
  EXPECT_EQ(matching.left_out.front().reason, "sample");
  EXPECT_NEAR(one.change.estimate, std::log(41.0 / 40.0), 0.001);
}

// A recording of a training: steps of 1 % noise, recordings 0.5 % apart, of
// which the device works four fifths.
KeptSide Recorded(std::mt19937& random, size_t steps, double slower,
                  double busier) {
  std::normal_distribution<double> step(0, 0.01), recording(0, 0.005);
  const double own = recording(random);
  KeptSide out;
  for (size_t i = 0; i < steps; ++i) {
    Unit unit;
    unit.number = i;
    unit.phase = Phase::kTrain;
    unit.load_name = "4096 tokens";
    unit.events = 100;
    const double ns = 1e7 * std::exp(own + step(random));
    unit.unit_ns = std::llround(ns * slower);
    unit.kernel_ns = unit.busy_ns = std::llround(0.8 * ns * busier);
    out.units.units.push_back(unit);
  }
  return out;
}

double CellOf(const Compared& compared, const char* column) {
  return compared.result.Find("diff_verdict")->At(1, column).real();
}

// What `lamina diff --fail-above 1%` does, device work included. Of recordings
// that are 0.5 % apart no gate at 1 % can fail 3 % most times; that they differ
// is seen.
TEST(Gate, NoiseRarelyFailsAndThreePercentAreSeen) {
  std::mt19937 random(20261127);
  Options options;
  options.fail_above = 0.01;
  constexpr int kPairs = 400;
  int alarms = 0, seen = 0, slow = 0;
  for (int i = 0; i < kPairs; ++i) {
    const auto compare = [&](double slower) {
      const KeptSide a = Recorded(random, 20, 1, 1);
      const KeptSide b = Recorded(random, 24, slower, slower);
      return CompareKept(a, b, options);
    };
    alarms += compare(1).verdict == Verdict::kFail;
    const Compared more = compare(1.03);
    seen += CellOf(more, "low_percent") > 0;
    slow += more.verdict == Verdict::kFail;
  }
  EXPECT_LE(alarms, kPairs / 100);
  EXPECT_GE(seen, kPairs * 95 / 100);
  EXPECT_GE(slow, kPairs / 2);
}

// Of several recordings a side nothing is assumed: 3 against 3 that are 0.5 %
// apart rarely fail at 1 %, and 4 % more are seen.
TEST(Gate, SeveralRecordingsMeasureTheirNoise) {
  std::mt19937 random(20261128);
  const auto joined = [&](double slower) {
    std::vector<Units> recordings;
    for (int i = 0; i < 3; ++i)
      recordings.push_back(Recorded(random, 12, slower, slower).units);
    return OneAfterTheOther(std::move(recordings));
  };
  constexpr int kPairs = 400;
  int alarms = 0, seen = 0;
  double noise = 0;
  for (int i = 0; i < kPairs; ++i) {
    const auto low = [&](double slower) {
      const PerSide<Units> sides{joined(1), joined(slower)};
      Options options;
      MeasureNoise(sides, options);
      noise += *options.run_noise / (2 * kPairs);
      return *MatchUnits(sides, options).phases.front().change.low;
    };
    alarms += std::expm1(low(1)) > 0.01;
    seen += low(1.04) > 0;
  }
  EXPECT_LE(alarms, kPairs / 100);
  EXPECT_GE(seen, kPairs * 95 / 100);
  EXPECT_NEAR(noise, 0.0055, 0.001);
}

TEST(Gate, DeviceWorkThatIdleTimeHidesFails) {
  std::mt19937 random(3);
  Options options;
  options.fail_above = 0.03;
  const auto compare = [&](double slower, double busier) {
    const KeptSide a = Recorded(random, 20, 1, 1);
    const KeptSide b = Recorded(random, 20, slower, busier);
    return CompareKept(a, b, options);
  };
  const Compared hidden = compare(1, 1.1);
  EXPECT_EQ(hidden.verdict, Verdict::kFail);
  EXPECT_EQ(hidden.result.Find("diff_verdict")->At(1, "reason").text(),
            "device_work");
  EXPECT_NEAR(CellOf(hidden, "busy_percent"), 10, 2);
  // What makes each step shorter may keep the device busier.
  EXPECT_EQ(compare(0.9, 1.1).verdict, Verdict::kPass);
  EXPECT_EQ(compare(1, 0.9).verdict, Verdict::kPass);
}

// The best of all ways to place up to `most` changes, each tried, by the cost
// that series.h says.
std::vector<size_t> BestOfAll(const std::vector<double>& v, size_t most) {
  const auto n = static_cast<double>(v.size());
  const double floor =
      n * std::pow(0.5 * *SeriesNoise(std::span<const double>(v)), 2);
  const auto residuals = [&](const std::vector<size_t>& places) {
    double sum = 0;
    size_t begin = 0;
    std::vector<size_t> ends = places;
    ends.push_back(v.size());
    for (const size_t end : ends) {
      double mean = 0;
      for (size_t i = begin; i < end; ++i)
        mean += v[i] / static_cast<double>(end - begin);
      for (size_t i = begin; i < end; ++i) sum += std::pow(v[i] - mean, 2);
      begin = end;
    }
    return sum;
  };
  std::vector<size_t> best, now;
  double least = n * std::log(std::max(residuals({}), floor) / n);
  const std::function<void(size_t)> place = [&](size_t from) {
    for (size_t i = from; i + 3 <= v.size(); ++i) {
      now.push_back(i);
      const double own = n * std::log(std::max(residuals(now), floor) / n) +
                         15 * static_cast<double>(now.size());
      if (own < least - 1e-9) {
        least = own;
        best = now;
      }
      if (now.size() < most) place(i + 3);
      now.pop_back();
    }
  };
  place(3);
  return best;
}

std::vector<double> NoisySeries(size_t count, uint32_t seed,
                                const std::function<double(size_t)>& factor) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, 0.01);
  std::vector<double> out;
  for (size_t i = 0; i < count; ++i)
    out.push_back(1e6 * factor(i) * std::exp(noise(random)));
  return out;
}

TEST(Series, ChangesAreTheBestOfAllPlaces) {
  size_t with_changes = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const auto times = NoisySeries(20, seed, [&](size_t i) {
      return i >= 6 && i < 6 + 4 + seed % 8 ? 1 + 0.01 * (seed % 10) : 1.0;
    });
    std::vector<double> logs;
    for (const double time : times) logs.push_back(std::log(time));
    const SeriesModel model = FindChanges(times, 0);
    // The reference knows neither slopes nor single runs.
    if (model.kind == SeriesKind::kDrift || !model.single.empty()) continue;
    std::vector<size_t> places;
    for (const SeriesChange& change : model.changes)
      places.push_back(change.index);
    EXPECT_EQ(places, BestOfAll(logs, 4)) << seed;
    with_changes += !places.empty();
  }
  EXPECT_GT(with_changes, 15u);
}

TEST(Series, NoiseIsNoChangeAndChangesAreFoundWhereTheyAre) {
  size_t false_alarms = 0, found = 0, near = 0, drifts = 0;
  constexpr uint32_t kSeeds = 400;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const size_t count = 12 + seed % 49;
    false_alarms +=
        FindChanges(NoisySeries(count, seed, [](size_t) { return 1.0; }), 0.01)
            .kind != SeriesKind::kNone;
    const size_t at = 8 + seed % 13;
    const SeriesModel step =
        FindChanges(NoisySeries(30, seed + 1000,
                                [&](size_t i) { return i >= at ? 1.04 : 1.0; }),
                    0.01);
    found += step.kind == SeriesKind::kStep;
    near += step.changes.size() == 1 && step.changes[0].index + 1 >= at &&
            step.changes[0].index <= at + 1;
    drifts += FindChanges(
                  NoisySeries(40, seed + 5000,
                              [](size_t i) {
                                return std::exp(0.003 * static_cast<double>(i));
                              }),
                  0.01)
                  .kind == SeriesKind::kDrift;
  }
  EXPECT_LE(false_alarms, kSeeds / 50);
  EXPECT_GE(found, kSeeds * 97 / 100);
  EXPECT_GE(near, kSeeds * 95 / 100);
  EXPECT_GE(drifts, kSeeds * 90 / 100);
}

TEST(Series, OfVeryManyRunsTheNewestChangeIsFound) {
  // A rise that was mended, long ago, and one of the last 5 runs.
  constexpr size_t kCount = 10'000;
  const auto times = NoisySeries(kCount, 3, [](size_t i) {
    return (i >= 4'321 && i < 4'361) || i + 5 >= kCount ? 1.06 : 1.0;
  });
  const SeriesModel model = FindChanges(times, 0.01);
  std::vector<size_t> places;
  for (const SeriesChange& change : model.changes)
    places.push_back(change.index);
  EXPECT_EQ(places, (std::vector<size_t>{4'321, 4'361, kCount - 5}));
  EXPECT_NEAR(*model.noise, 0.01, 0.001);
}

TEST(Series, OneRunAloneIsNoChange) {
  size_t none = 0;
  constexpr uint32_t kSeeds = 100;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    auto times = NoisySeries(20, seed, [](size_t) { return 1.0; });
    times[11] *= 1.3;
    const SeriesModel model = FindChanges(times, 0.01);
    EXPECT_TRUE(std::count(model.single.begin(), model.single.end(), 11));
    EXPECT_LT(*model.noise, 0.02);
    none += model.kind == SeriesKind::kNone;
  }
  EXPECT_GE(none, kSeeds * 97 / 100);
}

}  // namespace
}  // namespace lamina::runs
