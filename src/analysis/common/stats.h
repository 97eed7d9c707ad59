// SPDX-License-Identifier: Apache-2.0
//
// Statistics of durations. Sums are exact integers; mean and standard
// deviation are doubles of nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lamina::analysis {

struct Stats {
  size_t count = 0;
  int64_t sum = 0;
  int64_t min = 0;
  int64_t max = 0;
  double mean = 0;
  // Mean of the two middle values for an even count.
  double median = 0;
  int64_t p99 = 0;  // nearest rank
  // With n - 1 in the denominator; nothing for fewer than two values.
  std::optional<double> std_dev;
};

// Sorts `values`.
Stats Summarize(std::vector<int64_t>& values);

// The value at nearest rank `percent` of sorted values; 0 for none.
int64_t Percentile(const std::vector<int64_t>& sorted, double percent);

// The median, rounded towards the lower of two middle values; 0 for none.
int64_t MiddleOf(std::vector<int64_t> values);

// 100 * part / whole; 0 of nothing.
double PercentOf(int64_t part, int64_t whole);

// Nanoseconds rounded to whole ones, for table cells of type kTime.
int64_t RoundNs(double ns);

// Bins of equal width between the shortest and the longest value, edges in
// doubles of microseconds: edge i = first + i * (last - first) / bins. A value
// belongs to bin i if edge i <= value < edge i+1; the last bin is closed.
struct HistogramBin {
  double start_us = 0;
  double end_us = 0;
  int64_t count = 0;
};
std::vector<HistogramBin> MakeHistogram(std::vector<int64_t> values_ns,
                                        size_t bins);

}  // namespace lamina::analysis
