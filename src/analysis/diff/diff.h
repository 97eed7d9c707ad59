// SPDX-License-Identifier: Apache-2.0
//
// What changed between two traces of the same work: by op, kernel, category,
// module, layer, API call and timeline, with the causes of the difference in
// an order that adds up to it.
#pragma once

#include <cstdint>

#include "analysis/common/context.h"
#include "analysis/layers/layers.h"

namespace lamina::analysis::diff {

struct Options {
  bool python = false;  // all Python frames are matched, not only modules
};

struct Totals {
  int64_t kernel_time_ns = 0;  // sum of durations of all device slices
  int64_t busy_ns = 0;
  int64_t idle_ns = 0;
  int64_t total_ns = 0;
};

struct Comparison {
  ResultSet result;
  Totals a, b;
};

// True when the tree of a trace needs Python frames to be compared.
bool NeedsPythonStacks(const Trace& trace, const Options& options);

Comparison Compare(const Context& a, const Context& b,
                   const layers::Rules& rules, const Options& options);

}  // namespace lamina::analysis::diff
