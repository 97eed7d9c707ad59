// SPDX-License-Identifier: Apache-2.0
//
// The calls of an op with the same shapes, and how they used the device: what
// every table of the analysis has its rows from.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/common/cost_view.h"
#include "analysis/common/stats.h"

namespace lamina::analysis::efficiency {

struct Row {
  const CostView::Group* group = nullptr;
  std::string_view family;  // that most of the time belongs to
  size_t kernels = 0;
  int64_t kernel_time_ns = 0;
  int64_t busy_ns = 0;
  Stats stats;  // of the busy time of a call
  std::optional<cost::Roofline> roofline;
  int64_t roofline_ns = 0;  // of one call
  int64_t above_ns = 0;     // over all calls; calls below it count 0
  // Least time of all calls that a device can do: the roofline, and that of a
  // kernel that does nothing for each of their kernels.
  int64_t bound_ns = 0;
  int64_t above_bound_ns = 0;  // busy time above it, call by call
  int64_t short_ns = 0;        // busy time of short kernels
};

// By time, longest first.
std::vector<Row> MakeRows(const Context& context, const Efficiency& efficiency);

inline double Percent(double part, double whole) {
  return whole > 0 ? 100.0 * part / whole : 0.0;
}

}  // namespace lamina::analysis::efficiency
