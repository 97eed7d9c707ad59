// SPDX-License-Identifier: Apache-2.0
//
// What changed between two traces of the same work: by op, kernel, category,
// module, layer, API call and timeline, with the causes of the difference in
// an order that adds up to it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/layers/layers.h"

namespace lamina::analysis::diff {

struct Options {
  bool python = false;  // all Python frames are matched, not only modules
  char letter = 'B';    // what sentences call the second side
};

struct Totals {
  int64_t kernel_time_ns = 0;  // sum of durations of all device slices
  int64_t busy_ns = 0;
  int64_t idle_ns = 0;
  int64_t total_ns = 0;
};

// Which rows of the tables count a device slice, by side and by its row of
// device arguments: row + 1, 0 for none. What does not differ has no row.
// Empty when reports were compared.
struct Members {
  using Rows = std::array<std::vector<uint32_t>, 2>;
  Rows cause, op, kernel;        // diff_causes, diff_ops, diff_kernels
  Rows category, module, layer;  // of diff_by
};

struct Comparison {
  ResultSet result;
  std::array<Totals, 2> totals;  // of A and B
  Members members;
};

// True when the tree of a trace needs Python frames to be compared.
bool NeedsPythonStacks(const Trace& trace, const Options& options);

Comparison Compare(const Context& a, const Context& b,
                   const layers::Rules& rules, const Options& options);

// Two results of lamina report instead of the traces: ops by name and shapes,
// without modules, layers and API calls. Errors: kUsage when a table is missing
// that is needed.
struct ReportInput {
  std::string name;
  const ResultSet* result = nullptr;
};
Result<Comparison> CompareReports(const ReportInput& a, const ReportInput& b,
                                  const Options& options);

// Comparisons of B, C ... with the same A as one: every table gets a first
// column `side` that says which of them a row is about.
ResultSet JoinComparisons(std::vector<Comparison> comparisons);

}  // namespace lamina::analysis::diff
