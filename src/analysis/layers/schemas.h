// SPDX-License-Identifier: Apache-2.0
//
// Rows of the tables about layers. Times are in nanoseconds; what the columns
// mean stands in schemas.cc.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/layers/layers.h"
#include "table/row_columns.h"

namespace lamina::analysis::layers {

struct PassRow {
  int64_t pass, device;
  std::optional<int64_t> stream;
  int64_t start, wall, kernel_time, busy;
  size_t kernels;
  std::string_view stage, stage_evidence;
  std::optional<int64_t> batch, tokens;
  size_t layers;
  std::string_view evidence;
  bool cut;
  size_t graph_launches;
  std::string_view annotation;
};
const RowColumns<PassRow>& PassColumns();

struct LayerRow {
  uint32_t pass;
  std::string_view stack;
  uint32_t layer;
  std::string variant;
  std::string_view type, type_by, stage;
  int64_t start, wall, kernel_time;
  std::array<int64_t, kParts> parts;  // by Part
  int64_t gap;
  size_t kernels;
  uint32_t first_kernel, first_uid;
  std::string_view module, boundary;
  bool exact;
  std::string_view confidence;
  bool partial;
  std::optional<std::string> verdict = std::nullopt;
  std::optional<double> strength = std::nullopt;
};
const RowColumns<LayerRow>& LayerColumns();

struct TypeRow {
  std::string_view stack;
  std::string variant;
  std::string_view type, stage;
  size_t layers;
  int64_t kernel_time;
  double percent;
  int64_t mean, p50, p99, min, max, mean_wall;
  size_t kernels;
  int64_t outliers;
  std::string module;
};
const RowColumns<TypeRow>& TypeColumns();

struct StackRow {
  std::string_view stack;
  uint32_t period, layers_per_unit;
  std::string_view pattern, layers_per_pass;
  size_t passes, layers;
  double percent, exact_percent;
  std::string_view boundary, confidence;
};
const RowColumns<StackRow>& StackColumns();

struct StageRow {
  std::string_view stage, kernel_type, classic_type;
  size_t kernels;
  int64_t kernel_time;
  double percent_of_stage, percent;
};
const RowColumns<StageRow>& StageColumns();

struct OrphanRow {
  int64_t device;
  std::optional<int64_t> stream;
  std::string_view reason, kernel;
  size_t kernels;
  int64_t kernel_time;
  double percent;
};
const RowColumns<OrphanRow>& OrphanColumns();

const RowColumns<LayerModel::Check>& CheckColumns();

}  // namespace lamina::analysis::layers
