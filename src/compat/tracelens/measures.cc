// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/measures.h"

#include <algorithm>
#include <cmath>

#include "analysis/common/stats.h"

namespace lamina::compat::tracelens {

Five Summary(std::vector<double> values) {
  Five out;
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double v : values) sum += v;
  out.mean = sum / n;
  out.median =
      (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
  out.min = values.front();
  out.max = values.back();
  if (values.size() > 1) {
    double squares = 0;
    for (const double v : values) squares += (v - *out.mean) * (v - *out.mean);
    out.std_dev = std::sqrt(squares / (n - 1));
  }
  return out;
}

void AppendFive(std::vector<Value>& row, const Five& five) {
  for (const auto& value :
       {five.mean, five.median, five.std_dev, five.min, five.max})
    row.emplace_back(value);
}

void Measures::Add(const Trace& trace, const std::vector<SliceId>& work,
                   const Priced* priced) {
  const int64_t ns = analysis::UnionOf(trace, work);
  kernel_ns += ns;
  kernel_us.push_back(Us(ns));
  if (priced == nullptr || !priced->cost || ns == 0) return;
  const double seconds = static_cast<double>(ns) / 1e9;
  tflops.push_back(priced->cost->flops / seconds / 1e12);
  tbs.push_back(priced->cost->bytes / seconds / 1e12);
  if (priced->roofline)
    roofline_percent.push_back(100 * priced->roofline->seconds / seconds);
}

void AppendRoofline(std::vector<Value>& row, const Priced* priced) {
  if (priced == nullptr || !priced->roofline) {
    row.insert(row.end(), 2, Value());
    return;
  }
  row.emplace_back(priced->roofline->seconds * 1e6);
  row.emplace_back(priced->roofline->compute_bound ? "COMPUTE_BOUND"
                                                   : "MEMORY_BOUND");
}

Value Intensity(const Priced* priced) {
  if (priced == nullptr || !priced->cost || priced->cost->bytes == 0) return {};
  return priced->cost->flops / priced->cost->bytes;
}

}  // namespace lamina::compat::tracelens
