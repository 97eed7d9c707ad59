// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/stats.h"

#include <algorithm>
#include <cmath>

namespace lamina::analysis {

Stats Summarize(std::vector<int64_t>& values) {
  Stats stats;
  stats.count = values.size();
  if (values.empty()) return stats;
  std::sort(values.begin(), values.end());
  stats.min = values.front();
  stats.max = values.back();
  for (const int64_t value : values) stats.sum += value;
  const auto n = static_cast<double>(values.size());
  stats.mean = static_cast<double>(stats.sum) / n;
  const size_t middle = values.size() / 2;
  stats.median = static_cast<double>(values[middle]);
  if (values.size() % 2 == 0) {
    stats.median = (static_cast<double>(values[middle - 1]) +
                    static_cast<double>(values[middle])) /
                   2;
  }
  stats.p99 = Percentile(values, 99);
  if (values.size() > 1) {
    double squares = 0;
    for (const int64_t value : values) {
      const double d = static_cast<double>(value) - stats.mean;
      squares += d * d;
    }
    stats.std_dev = std::sqrt(squares / (n - 1));
  }
  return stats;
}

int64_t Percentile(const std::vector<int64_t>& sorted, double percent) {
  if (sorted.empty()) return 0;
  const double rank =
      std::ceil(percent / 100.0 * static_cast<double>(sorted.size()));
  const auto index = static_cast<size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

int64_t MiddleOf(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const int64_t low = values[(values.size() - 1) / 2];
  return low + (values[values.size() / 2] - low) / 2;
}

std::vector<HistogramBin> MakeHistogram(std::vector<int64_t> values_ns,
                                        size_t bins) {
  std::vector<HistogramBin> out;
  if (values_ns.empty()) return out;
  std::sort(values_ns.begin(), values_ns.end());
  double first = static_cast<double>(values_ns.front()) / 1000.0;
  double last = static_cast<double>(values_ns.back()) / 1000.0;
  if (first == last) {  // one value: a unit around it, as numpy does
    first -= 0.5;
    last += 0.5;
  }
  const double step = (last - first) / static_cast<double>(bins);
  const auto edge = [&](size_t i) {
    return i == bins ? last : first + static_cast<double>(i) * step;
  };
  size_t next = 0;
  for (size_t i = 0; i < bins; ++i) {
    HistogramBin bin{edge(i), edge(i + 1), 0};
    while (next < values_ns.size()) {
      const double value = static_cast<double>(values_ns[next]) / 1000.0;
      if (i + 1 < bins ? value >= bin.end_us : value > bin.end_us) break;
      ++bin.count;
      ++next;
    }
    out.push_back(bin);
  }
  return out;
}

double PercentOf(int64_t part, int64_t whole) {
  if (whole <= 0) return 0;
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

int64_t RoundNs(double ns) { return std::llround(ns); }

}  // namespace lamina::analysis
