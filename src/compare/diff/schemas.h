// SPDX-License-Identifier: Apache-2.0
//
// Rows of the tables of a comparison. Times are in nanoseconds; what the
// columns mean stands in schemas.cc.
#pragma once

#include <optional>
#include <string_view>

#include "table/row_columns.h"

namespace lamina::analysis::diff {

using OptionalText = std::optional<std::string_view>;

struct DiffTotalsRow {
  std::string_view side, input;
  OptionalText device;
  int64_t steps, kernel_time, listed, unchanged, unlinked, busy, idle, total,
      device_slices;
};
const RowColumns<DiffTotalsRow>& TotalsColumns();

struct DiffCauseRow {
  std::string_view cause, change;
  std::optional<int64_t> count_a, count_b;
  int64_t time_a, time_b, delta;
  std::optional<double> percent;
};
const RowColumns<DiffCauseRow>& CauseColumns();

struct DiffOpRow {
  std::string_view op, module;
  OptionalText shapes;
  std::string_view kind;
  int64_t delta, kernel_time_a, kernel_time_b, count_a, count_b;
  std::optional<double> ratio;
  OptionalText module_b, shapes_b, types_a, types_b;
  std::optional<uint32_t> uid_a, uid_b;
};
const RowColumns<DiffOpRow>& OpColumns();

struct DiffKernelRow {
  std::string_view op;
  OptionalText kernel_a, kernel_b;
  int64_t delta, kernel_time_a, kernel_time_b, count_a, count_b;
};
const RowColumns<DiffKernelRow>& KernelColumns();

struct DiffByRow {
  std::string_view dimension, key;
  std::optional<int64_t> count_a, count_b;
  int64_t time_a, time_b, delta;
};
const RowColumns<DiffByRow>& ByColumns();

struct DiffCallRow {
  std::string_view call;
  int64_t count_a, count_b, launched_a, launched_b, host_a, host_b, delta;
};
const RowColumns<DiffCallRow>& CallColumns();

struct DiffMovedRow {
  std::string_view name, module;
  int64_t kernel_time_a, kernel_time_b;
  std::optional<uint32_t> uid_a, uid_b;
};
const RowColumns<DiffMovedRow>& MovedColumns();

}  // namespace lamina::analysis::diff
