// SPDX-License-Identifier: Apache-2.0
//
// Rows of the tables about ops. Times are in nanoseconds; what the columns
// mean stands in schemas.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "table/row_columns.h"

namespace lamina::analysis::ops {

struct CategoryRow {
  std::string_view category, group, kind;
  size_t launchers, kernels;
  int64_t kernel_time, busy;
  double percent, cumulative_percent;
};
const RowColumns<CategoryRow>& CategoryColumns();

struct OpRow {
  std::string_view op, kernel, family;
  size_t count, kernels;
  int64_t kernel_time;
  double percent;
  int64_t busy, subtree_time, host;
  double cumulative_percent;
  uint32_t first_uid;
};
const RowColumns<OpRow>& OpColumns();

using OptionalText = std::optional<std::string_view>;
struct ShapeRow {
  std::string_view op;
  OptionalText input_dims;
  std::string kernel;
  std::string_view family;
  size_t count;
  int64_t kernel_time;
  double percent;
  int64_t mean, p50;
  std::optional<int64_t> std_dev;
  int64_t min, max, busy;
  size_t kernels, varying_kernels;
  OptionalText input_types, input_strides, concrete_inputs;
  uint32_t first_uid;
};
const RowColumns<ShapeRow>& ShapeColumns();

struct LauncherRow {
  uint32_t uid;
  std::string_view op;
  OptionalText module;
  int64_t start, host;
  size_t kernels;
  int64_t kernel_time, busy, launch_latency;
  std::optional<int64_t> step;
};
const RowColumns<LauncherRow>& LauncherColumns();

}  // namespace lamina::analysis::ops
