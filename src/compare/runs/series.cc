// SPDX-License-Identifier: Apache-2.0
//
// Method: single runs that are far from all around them are pulled back; sums
// and sums of squares from the left give the residuals of any segment in one
// step; dynamic programming over the candidates finds the best places of 1 to 4
// changes together, because a rise that is mended later is seen by neither of
// its places alone.
#include "compare/runs/series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace lamina::runs {
namespace {

constexpr double kPenalty = 12;     // of a slope
constexpr double kOfChange = 1.25;  // times this, of a change
constexpr size_t kMostChanges = 4;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Up to this many runs every place is a candidate.
constexpr size_t kMostExact = 600;

double MedianOf(std::span<const double> values) {
  return Median({values.begin(), values.end()});
}

// Values with single runs pulled back, which `single` names.
std::vector<double> PullBack(const std::vector<double>& v, double noise,
                             std::vector<size_t>& single) {
  constexpr size_t kNear = 3;
  std::vector<double> out = v;
  for (size_t i = 1; i + 1 < v.size(); ++i) {
    const size_t from = i - std::min(i, kNear);
    const size_t to = std::min(v.size(), i + 1 + kNear);
    const std::span<const double> left(&v[from], i - from);
    const std::span<const double> right(&v[i + 1], to - i - 1);
    if (left.size() + right.size() < 4) continue;
    std::vector<double> near(left.begin(), left.end());
    near.insert(near.end(), right.begin(), right.end());
    const double middle = Median(std::move(near));
    if (std::abs(v[i] - middle) <= 5 * noise ||
        std::abs(v[i] - MedianOf(left)) <= 4 * noise ||
        std::abs(v[i] - MedianOf(right)) <= 4 * noise)
      continue;
    out[i] = middle;
    single.push_back(i);
  }
  return out;
}

// Residual sums of squares of segments [from, to) around their mean.
class Residuals {
 public:
  explicit Residuals(const std::vector<double>& v)
      : sum_(v.size() + 1), squares_(v.size() + 1) {
    // Around the first value, so that little is lost by cancellation.
    for (size_t i = 0; i < v.size(); ++i) {
      const double own = v[i] - v[0];
      sum_[i + 1] = sum_[i] + own;
      squares_[i + 1] = squares_[i] + own * own;
    }
  }
  double Of(size_t from, size_t to) const {
    const double sum = sum_[to] - sum_[from];
    return std::max(0.0, squares_[to] - squares_[from] -
                             sum * sum / static_cast<double>(to - from));
  }
  double Mean(size_t from, size_t to) const {
    return (sum_[to] - sum_[from]) / static_cast<double>(to - from);
  }
  size_t size() const { return sum_.size() - 1; }

 private:
  std::vector<double> sum_, squares_;
};

// Where a change may be, in order.
std::vector<size_t> Candidates(const Residuals& residuals) {
  const size_t n = residuals.size();
  std::vector<size_t> out;
  if (n <= kMostExact) {
    for (size_t i = kShortestSegment; i + kShortestSegment <= n; ++i)
      out.push_back(i);
    return out;
  }
  constexpr size_t kGrid = 200, kOfWidth = 60, kNewest = 40;
  for (size_t k = 1; k < kGrid; ++k) out.push_back(k * n / kGrid);
  for (size_t k = kShortestSegment; k <= kNewest; ++k) out.push_back(n - k);
  for (const size_t width : {size_t{3}, size_t{10}, size_t{30}, size_t{100}}) {
    std::vector<std::pair<double, size_t>> contrast;
    for (size_t i = width; i + width <= n; ++i) {
      contrast.emplace_back(-std::abs(residuals.Mean(i, i + width) -
                                      residuals.Mean(i - width, i)),
                            i);
    }
    const size_t most = std::min(kOfWidth, contrast.size());
    std::partial_sort(contrast.begin(),
                      contrast.begin() + static_cast<ptrdiff_t>(most),
                      contrast.end());
    for (size_t k = 0; k < most; ++k) out.push_back(contrast[k].second);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  std::erase_if(out, [&](size_t i) {
    return i < kShortestSegment || i + kShortestSegment > n;
  });
  return out;
}

// The best places of 1, 2, ... changes: [k] has k + 1 of them.
std::vector<std::vector<size_t>> BestPlaces(
    const Residuals& residuals, const std::vector<size_t>& candidates) {
  const size_t n = residuals.size();
  std::vector<size_t> ends = candidates;
  ends.push_back(n);
  // least[c]: of the runs before ends[c], with so many changes.
  std::vector<double> least(ends.size());
  for (size_t c = 0; c < ends.size(); ++c) least[c] = residuals.Of(0, ends[c]);
  std::vector<std::vector<uint32_t>> from;
  std::vector<std::vector<size_t>> out;
  for (size_t k = 1; k <= kMostChanges; ++k) {
    std::vector<double> next(ends.size(), kInfinity);
    auto& before = from.emplace_back(ends.size(), 0);
    for (size_t c = 0; c < ends.size(); ++c) {
      for (size_t b = 0; b < c && ends[b] + kShortestSegment <= ends[c]; ++b) {
        const double own = least[b] + residuals.Of(ends[b], ends[c]);
        if (own >= next[c]) continue;
        next[c] = own;
        before[c] = static_cast<uint32_t>(b);
      }
    }
    least = std::move(next);
    if (least.back() == kInfinity) break;
    std::vector<size_t> places;
    size_t c = ends.size() - 1;
    for (size_t step = k; step-- > 0;) {
      c = from[step][c];
      places.push_back(ends[c]);
    }
    std::reverse(places.begin(), places.end());
    out.push_back(std::move(places));
  }
  return out;
}

double ResidualsOf(const Residuals& residuals,
                   const std::vector<size_t>& places) {
  double sum = 0;
  size_t begin = 0;
  for (const size_t place : places) {
    sum += residuals.Of(begin, place);
    begin = place;
  }
  return sum + residuals.Of(begin, residuals.size());
}

// Moves each place to the best between its neighbours until none moves.
void Settle(const Residuals& residuals, std::vector<size_t>& places) {
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t k = 0; k < places.size(); ++k) {
      const size_t low = k == 0 ? 0 : places[k - 1];
      const size_t high =
          k + 1 == places.size() ? residuals.size() : places[k + 1];
      double least =
          residuals.Of(low, places[k]) + residuals.Of(places[k], high);
      for (size_t i = low + kShortestSegment; i + kShortestSegment <= high;
           ++i) {
        const double own = residuals.Of(low, i) + residuals.Of(i, high);
        if (own >= least - 1e-15) continue;
        least = own;
        places[k] = i;
        moved = true;
      }
    }
  }
}

double SlopeResiduals(const std::vector<double>& v) {
  const auto n = static_cast<double>(v.size());
  const double middle = (n - 1) / 2;
  const double mean = std::accumulate(v.begin(), v.end(), 0.0) / n;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    const double x = static_cast<double>(i) - middle, y = v[i] - mean;
    xy += x * y;
    xx += x * x;
    yy += y * y;
  }
  return std::max(0.0, yy - xy * xy / xx);
}

// The Theil-Sen slope, of many runs by some that are evenly taken.
double SlopeOf(const std::vector<double>& v) {
  constexpr size_t kMost = 400;
  const size_t step = 1 + (v.size() - 1) / kMost;
  std::vector<double> slopes;
  for (size_t i = 0; i < v.size(); i += step) {
    for (size_t j = i + step; j < v.size(); j += step)
      slopes.push_back((v[j] - v[i]) / static_cast<double>(j - i));
  }
  return Median(std::move(slopes));
}

// Of the segments [a, b) and [b, c): by medians, with the interval of the runs
// near the change.
Shift ShiftBetween(std::span<const double> times, const std::vector<double>& v,
                   size_t a, size_t b, size_t c) {
  constexpr size_t kNear = 150;
  const size_t from = std::max(a, b - std::min(b, kNear));
  const size_t to = std::min(c, b + kNear);
  Shift shift = UnpairedShift(times.subspan(from, b - from),
                              times.subspan(b, to - b), 0.95);
  shift.estimate = MedianOf(std::span(v).subspan(b, c - b)) -
                   MedianOf(std::span(v).subspan(a, b - a));
  return shift;
}

}  // namespace

std::string_view SeriesKindName(SeriesKind kind) {
  static constexpr std::string_view kNames[] = {"unknown", "none", "step",
                                                "steps", "drift"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<double> SeriesNoise(std::span<const double> logs) {
  if (logs.size() < 4) return std::nullopt;
  std::vector<double> steps;
  for (size_t i = 1; i < logs.size(); ++i)
    steps.push_back(std::abs(logs[i] - logs[i - 1]));
  const double cap = 4 * Median(steps);
  double sum = 0;
  for (const double step : steps) sum += std::min(step, cap);
  // Of normal values the mean difference is 2 / sqrt(pi) deviations.
  constexpr double kToDeviation = 0.8862, kLeast = 1e-5;
  return std::max(kLeast,
                  kToDeviation * sum / static_cast<double>(steps.size()));
}

SeriesModel FindChanges(std::span<const double> times, double min_effect) {
  SeriesModel out;
  std::vector<double> logs;
  for (const double time : times) logs.push_back(std::log(time));
  out.noise = SeriesNoise(logs);
  const size_t n = logs.size();
  if (n < kFewestRuns) return out;
  const auto count = static_cast<double>(n);
  const std::vector<double> v = PullBack(logs, *out.noise, out.single);
  out.noise = SeriesNoise(v);
  // Rounded times of one value are no sign of anything.
  const double floor = count * std::pow(0.5 * *out.noise, 2);
  // More runs have more places by chance.
  const double penalty = kPenalty + 2 * std::log(std::max(1.0, count / 60));
  const auto cost = [&](double residuals, double changes) {
    return count * std::log(std::max(residuals, floor) / count) +
           penalty * changes;
  };
  const Residuals residuals(v);
  double best = cost(residuals.Of(0, n), 0);
  std::vector<size_t> places;
  bool drifts = false;
  if (const double own = cost(SlopeResiduals(v), 1); own < best) {
    best = own;
    drifts = true;
  }
  for (auto& own : BestPlaces(residuals, Candidates(residuals))) {
    if (n > kMostExact) Settle(residuals, own);
    const double of_these = cost(ResidualsOf(residuals, own),
                                 kOfChange * static_cast<double>(own.size()));
    if (of_these >= best - 1e-9) continue;
    best = of_these;
    places = std::move(own);
    drifts = false;
  }
  for (size_t k = 0; k < places.size(); ++k) {
    const size_t before = k == 0 ? 0 : places[k - 1];
    const size_t after = k + 1 == places.size() ? n : places[k + 1];
    const Shift shift = ShiftBetween(times, v, before, places[k], after);
    if (std::abs(std::expm1(shift.estimate)) >= min_effect)
      out.changes.push_back({places[k], shift});
  }
  if (drifts) {
    out.slope = SlopeOf(v);
    if (std::abs(std::expm1(out.slope)) * (count - 1) < min_effect)
      out.slope = 0;
  }
  out.kind = out.slope != 0            ? SeriesKind::kDrift
             : out.changes.empty()     ? SeriesKind::kNone
             : out.changes.size() == 1 ? SeriesKind::kStep
                                       : SeriesKind::kSteps;
  // Half of the runs on either side: the gain in the fit must exceed the
  // penalty.
  constexpr double kPower = 0.8;
  out.detectable = (std::sqrt(kOfChange * penalty) + NormalQuantile(kPower)) *
                   *out.noise * std::sqrt(4 / count);
  return out;
}

}  // namespace lamina::runs
