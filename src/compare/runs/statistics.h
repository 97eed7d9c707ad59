// SPDX-License-Identifier: Apache-2.0
//
// How much two samples of times differ, and how sure that is. Times are
// compared as logarithms, so a shift of 0.01 is about 1 %. Nothing is random:
// equal inputs give equal results.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace lamina::runs {

// A shift of log b against log a with its interval.
struct Shift {
  double estimate = 0;
  // Nothing where the samples are too small for the level.
  std::optional<double> low, high;
};

// A shift of logarithms in percent.
inline double PercentOf(double shift) { return 100 * std::expm1(shift); }

// The Hodges-Lehmann estimate, the median of all log b - log a, and its
// interval by inversion of the Mann-Whitney test: exact up to 60 values a side,
// by the normal approximation above (Hollander, Wolfe, Chicken: Nonparametric
// Statistical Methods, 4.2 and 4.3). Times must be above 0; neither is empty.
// `level`: 0.95.
Shift UnpairedShift(std::span<const double> a, std::span<const double> b,
                    double level);

// The centre of log ratios of pairs, the median of the means of two of them,
// and its interval by inversion of Wilcoxon's signed-rank test (the same, 3.2
// and 3.3). Not empty.
Shift PairedShift(std::span<const double> log_ratios, double level);

// By how much an interval must be wider because neighbours are alike: from the
// lag-one rank correlation of values in order of time; 1 where that cannot be
// told from 0.
double SerialFactor(std::span<const double> values);

// With neighbours that are alike, and with what another recording of the same
// program would differ by: one standard deviation of a logarithm, per
// recording.
Shift Widen(const Shift& shift, double serial_factor, double run_noise,
            double level);

// The least shift that two samples of m and n values with this standard
// deviation would have shown with a power of 80 %.
double DetectableShift(double deviation, size_t m, size_t n, double run_noise,
                       double level);

double Median(std::vector<double> values);
// 1.4826 times the median distance from the median: the standard deviation of
// normal values.
double RobustDeviation(const std::vector<double>& values);
// The value below which a share `p` of normal values lies; 0 < p < 1.
double NormalQuantile(double p);
// The same of Student's distribution with `freedom` degrees, at least 1: exact
// for 1 and 2, else by the expansion of Cornish and Fisher, to 2 % at 0.975.
double StudentQuantile(double p, size_t freedom);

}  // namespace lamina::runs
