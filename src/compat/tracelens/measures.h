// SPDX-License-Identifier: Apache-2.0
//
// Times and rates of the rows of the performance sheets.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compat/tracelens/model.h"
#include "compat/tracelens/pricer.h"

namespace lamina::compat::tracelens {

// mean, median, std, min, max of doubles.
struct Five {
  std::optional<double> mean, median, std_dev, min, max;
};
Five Summary(std::vector<double> values);

// The names of the five, as columns end in them, and their cells.
inline constexpr const char* kStatistics[] = {"mean", "median", "std", "min",
                                              "max"};
void AppendFive(std::vector<Value>& row, const Five& five);

// Times and rates over the items of a row.
struct Measures {
  std::vector<double> kernel_us, tflops, tbs;
  std::vector<double> roofline_percent;
  int64_t kernel_ns = 0;

  // Of the kernels `work`; `priced` may be null.
  void Add(const Trace& trace, const std::vector<SliceId>& work,
           const Priced* priced);
};

// Cells "Roofline Time (µs)" and "Roofline Bound"; null without a roofline.
void AppendRoofline(std::vector<Value>& row, const Priced* priced);

// FLOPs per byte; null without a cost.
Value Intensity(const Priced* priced);

}  // namespace lamina::compat::tracelens
