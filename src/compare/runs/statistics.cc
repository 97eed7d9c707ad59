// SPDX-License-Identifier: Apache-2.0
#include "compare/runs/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lamina::runs {
namespace {

// Above this many values a side the normal approximation serves.
constexpr size_t kMaxExact = 60;
constexpr size_t kMaxExactPairs = 2500;
// Of more units as many as this are compared, evenly taken.
constexpr size_t kMaxSample = 2000;

// How many orders of m and n values have each Mann-Whitney statistic, 0 to mn:
// coefficients of the product of (1 - q^(n+i)) / (1 - q^i). As doubles, which
// hold shares well enough.
std::vector<double> MannWhitneyCounts(size_t m, size_t n) {
  std::vector<double> counts = {1};
  for (size_t i = 1; i <= m; ++i) {
    std::vector<double> next(counts.size() + n + i, 0);
    for (size_t k = 0; k < counts.size(); ++k) {
      next[k] += counts[k];
      next[k + n + i] -= counts[k];
    }
    for (size_t k = i; k < next.size(); ++k) next[k] += next[k - i];
    next.resize(i * n + 1);
    counts = std::move(next);
  }
  return counts;
}

// How many patterns of signs of n pairs have each signed-rank sum.
std::vector<double> SignedRankCounts(size_t n) {
  std::vector<double> counts = {1};
  for (size_t i = 1; i <= n; ++i) {
    std::vector<double> next(counts.size() + i, 0);
    for (size_t k = 0; k < counts.size(); ++k) {
      next[k] += counts[k];
      next[k + i] += counts[k];
    }
    counts = std::move(next);
  }
  return counts;
}

// The largest k such that the statistic is below k with a probability of at
// most (1 - level) / 2; 0: none.
size_t CriticalOrder(const std::vector<double>& counts, double level) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  double below = 0;
  for (size_t k = 0; k < counts.size(); ++k) {
    if ((below + counts[k]) / total > (1 - level) / 2) return k;
    below += counts[k];
  }
  return 0;
}

size_t NormalOrder(double mean, double deviation, double level) {
  const double k = mean - NormalQuantile(0.5 + level / 2) * deviation;
  return k >= 1 ? static_cast<size_t>(k) : 0;
}

double SortedMedian(const std::vector<double>& sorted) {
  const size_t n = sorted.size();
  return (sorted[n / 2] + sorted[(n - 1) / 2]) / 2;
}

// `sorted` are all differences or means; the k-th from either end bounds.
Shift ShiftOf(const std::vector<double>& sorted, size_t k) {
  Shift shift;
  shift.estimate = SortedMedian(sorted);
  if (k >= 1) {
    shift.low = sorted[k - 1];
    shift.high = sorted[sorted.size() - k];
  }
  return shift;
}

std::vector<double> Sampled(std::span<const double> values) {
  if (values.size() <= kMaxSample) return {values.begin(), values.end()};
  std::vector<double> out;
  for (size_t i = 0; i < kMaxSample; ++i)
    out.push_back(values[i * values.size() / kMaxSample]);
  return out;
}

}  // namespace

Shift UnpairedShift(std::span<const double> a, std::span<const double> b,
                    double level) {
  const std::vector<double> before = Sampled(a), after = Sampled(b);
  std::vector<double> differences;
  differences.reserve(before.size() * after.size());
  for (const double x : before) {
    for (const double y : after)
      differences.push_back(std::log(y) - std::log(x));
  }
  std::sort(differences.begin(), differences.end());
  const size_t m = before.size(), n = after.size();
  const bool exact = m * n <= kMaxExactPairs && std::max(m, n) <= kMaxExact;
  const auto pairs = static_cast<double>(m * n);
  return ShiftOf(
      differences,
      exact
          ? CriticalOrder(MannWhitneyCounts(m, n), level)
          : NormalOrder(pairs / 2,
                        std::sqrt(pairs * static_cast<double>(m + n + 1) / 12),
                        level));
}

Shift PairedShift(std::span<const double> log_ratios, double level) {
  const std::vector<double> ratios = Sampled(log_ratios);
  std::vector<double> means;
  means.reserve(ratios.size() * (ratios.size() + 1) / 2);
  for (size_t i = 0; i < ratios.size(); ++i) {
    for (size_t j = i; j < ratios.size(); ++j)
      means.push_back((ratios[i] + ratios[j]) / 2);
  }
  std::sort(means.begin(), means.end());
  const auto n = static_cast<double>(ratios.size());
  return ShiftOf(
      means,
      ratios.size() <= kMaxExact
          ? CriticalOrder(SignedRankCounts(ratios.size()), level)
          : NormalOrder(n * (n + 1) / 4,
                        std::sqrt(n * (n + 1) * (2 * n + 1) / 24), level));
}

double SerialFactor(std::span<const double> values) {
  constexpr size_t kLeast = 8;
  constexpr double kMost = 0.9;  // of the correlation
  const size_t n = values.size();
  if (n < kLeast) return 1;
  std::vector<size_t> order(n), rank(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return values[i] < values[j]; });
  for (size_t k = 0; k < n; ++k) rank[order[k]] = k;
  const double mean = (static_cast<double>(n) - 1) / 2;
  double with_next = 0, all = 0;
  for (size_t i = 0; i < n; ++i) {
    const double own = static_cast<double>(rank[i]) - mean;
    all += own * own;
    if (i + 1 < n) with_next += own * (static_cast<double>(rank[i + 1]) - mean);
  }
  const double r = std::min(with_next / all, kMost);
  if (r <= 2 / std::sqrt(static_cast<double>(n))) return 1;
  return std::sqrt((1 + r) / (1 - r));
}

Shift Widen(const Shift& shift, double serial_factor, double run_noise,
            double level) {
  if (!shift.low) return shift;
  const double between =
      NormalQuantile(0.5 + level / 2) * run_noise * std::sqrt(2.0);
  Shift out = shift;
  out.low = shift.estimate -
            std::hypot((shift.estimate - *shift.low) * serial_factor, between);
  out.high =
      shift.estimate +
      std::hypot((*shift.high - shift.estimate) * serial_factor, between);
  return out;
}

double DetectableShift(double deviation, size_t m, size_t n, double run_noise,
                       double level) {
  constexpr double kPower = 0.8;
  constexpr double kPi = 3.14159265358979323846;
  const double units = 1 / static_cast<double>(m) + 1 / static_cast<double>(n);
  return (NormalQuantile(0.5 + level / 2) + NormalQuantile(kPower)) *
         std::hypot(deviation * std::sqrt(units * kPi / 3),
                    run_noise * std::sqrt(2.0));
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return SortedMedian(values);
}

double RobustDeviation(const std::vector<double>& values) {
  const double middle = Median(values);
  std::vector<double> distances;
  for (const double v : values) distances.push_back(std::abs(v - middle));
  return 1.4826 * Median(std::move(distances));
}

double NormalQuantile(double p) {
  // Bisection of the distribution function, to the last bits of a double.
  double low = -40, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

double StudentQuantile(double p, size_t freedom) {
  constexpr double kPi = 3.14159265358979323846;
  const double twice = 2 * p - 1;
  if (freedom == 1) return std::tan(kPi * (p - 0.5));
  if (freedom == 2) return twice * std::sqrt(2 / (1 - twice * twice));
  const auto n = static_cast<double>(freedom);
  const double z = NormalQuantile(p), z2 = z * z;
  return z + z * (z2 + 1) / (4 * n) +
         z * ((5 * z2 + 16) * z2 + 3) / (96 * n * n) +
         z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * n * n * n);
}

}  // namespace lamina::runs
