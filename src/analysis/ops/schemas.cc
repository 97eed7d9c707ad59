// SPDX-License-Identifier: Apache-2.0
#include "analysis/ops/schemas.h"

namespace lamina::analysis::ops {

const RowColumns<CategoryRow>& CategoryColumns() {
  static const RowColumns<CategoryRow> columns{
      "op_categories",
      "Device time by family of op: categories + collectives + unlinked = "
      "all.",
      {{"category", ColumnType::kText, "Family of the op or kernel.",
        &CategoryRow::category},
       {"group", ColumnType::kText, "Group that shares a colour.",
        &CategoryRow::group, Shown::kHidden},
       {"kind", ColumnType::kText,
        "category, collective, or unlinked (work without a launch in the "
        "trace).",
        &CategoryRow::kind},
       {"launchers", ColumnType::kInt, "Calls that launched the work.",
        &CategoryRow::launchers},
       {"kernels", ColumnType::kInt, "Device slices, copies and fills too.",
        &CategoryRow::kernels},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations.",
        &CategoryRow::kernel_time},
       {"busy_us", ColumnType::kTime, "Length of the union of them.",
        &CategoryRow::busy},
       {"percent", ColumnType::kReal, "Share of the sum over all rows.",
        &CategoryRow::percent, Shown::kBar},
       {"cumulative_percent", ColumnType::kReal, "Running share.",
        &CategoryRow::cumulative_percent, Shown::kHidden}}};
  return columns;
}

const RowColumns<OpRow>& OpColumns() {
  static const RowColumns<OpRow> columns{
      "ops",
      "Device time by op, without collectives.",
      {{"op", ColumnType::kText,
        "Op that launched the work, or the API call without one.", &OpRow::op},
       {"kernel", ColumnType::kText,
        "Kernel of a call without an op, so that unrelated kernels share no "
        "row; empty for ops and graph launches.",
        &OpRow::kernel},
       {"family", ColumnType::kText, "Family with most of the time.",
        &OpRow::family},
       {"count", ColumnType::kInt, "Calls.", &OpRow::count},
       {"kernels", ColumnType::kInt, "Device slices they launched.",
        &OpRow::kernels},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations.",
        &OpRow::kernel_time},
       {"percent", ColumnType::kReal,
        "Share of all device time, collectives and unlinked work too.",
        &OpRow::percent, Shown::kBar},
       {"busy_us", ColumnType::kTime, "Sum over calls of the union.",
        &OpRow::busy, Shown::kHidden},
       {"subtree_time_us", ColumnType::kTime,
        "Sum of durations of everything below the calls.", &OpRow::subtree_time,
        Shown::kHidden},
       {"host_us", ColumnType::kTime, "Host time of the calls.", &OpRow::host,
        Shown::kHidden},
       {"cumulative_percent", ColumnType::kReal, "Running share.",
        &OpRow::cumulative_percent, Shown::kHidden},
       {"first_uid", ColumnType::kInt, "Event number of the first call.",
        &OpRow::first_uid, Shown::kHidden}}};
  return columns;
}

const RowColumns<ShapeRow>& ShapeColumns() {
  static const RowColumns<ShapeRow> columns{
      "op_shapes",
      "Ops by their arguments.",
      {{"op", ColumnType::kText, "Op, or API call without one.", &ShapeRow::op},
       {"input_dims", ColumnType::kText, "Shapes by argument, JSON.",
        &ShapeRow::input_dims},
       {"kernel", ColumnType::kText,
        "Kernels of the first call, at most four names.", &ShapeRow::kernel},
       {"family", ColumnType::kText, "Family with most of the time.",
        &ShapeRow::family},
       {"count", ColumnType::kInt, "Calls.", &ShapeRow::count},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations.",
        &ShapeRow::kernel_time},
       {"percent", ColumnType::kReal, "Share of all device time.",
        &ShapeRow::percent, Shown::kPercent},
       {"mean_us", ColumnType::kTime, "Mean device time of a call.",
        &ShapeRow::mean},
       {"p50_us", ColumnType::kTime, "Median.", &ShapeRow::p50, Shown::kHidden},
       {"std_us", ColumnType::kTime, "Standard deviation (n - 1).",
        &ShapeRow::std_dev, Shown::kHidden},
       {"min_us", ColumnType::kTime, "Shortest.", &ShapeRow::min,
        Shown::kHidden},
       {"max_us", ColumnType::kTime, "Longest.", &ShapeRow::max,
        Shown::kHidden},
       {"busy_us", ColumnType::kTime, "Sum over calls of the union.",
        &ShapeRow::busy, Shown::kHidden},
       {"kernels", ColumnType::kInt, "Device slices in all.",
        &ShapeRow::kernels, Shown::kHidden},
       {"varying_kernels", ColumnType::kInt,
        "Calls with another number of kernels than the first.",
        &ShapeRow::varying_kernels, Shown::kHidden},
       {"input_types", ColumnType::kText, "Types by argument, JSON.",
        &ShapeRow::input_types, Shown::kHidden},
       {"input_strides", ColumnType::kText, "Strides by argument, JSON.",
        &ShapeRow::input_strides, Shown::kHidden},
       {"concrete_inputs", ColumnType::kText, "Scalar arguments as text, JSON.",
        &ShapeRow::concrete_inputs, Shown::kHidden},
       {"first_uid", ColumnType::kInt, "Event number of the first call.",
        &ShapeRow::first_uid, Shown::kHidden}}};
  return columns;
}

const RowColumns<LauncherRow>& LauncherColumns() {
  static const RowColumns<LauncherRow> columns{
      "launchers",
      "Every call that launched device work, in order of time.",
      {{"uid", ColumnType::kInt, "Event number of the call.",
        &LauncherRow::uid},
       {"op", ColumnType::kText, "Op, or API call without one.",
        &LauncherRow::op},
       {"module", ColumnType::kText, "Module path, if known.",
        &LauncherRow::module},
       {"start_us", ColumnType::kTime, "From the first event.",
        &LauncherRow::start},
       {"host_us", ColumnType::kTime, "Host time of the call.",
        &LauncherRow::host},
       {"kernels", ColumnType::kInt, "Device slices it launched itself.",
        &LauncherRow::kernels},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations.",
        &LauncherRow::kernel_time},
       {"busy_us", ColumnType::kTime, "Length of their union.",
        &LauncherRow::busy},
       {"launch_latency_us", ColumnType::kTime,
        "From the start of the first API call to the start of its work.",
        &LauncherRow::launch_latency},
       {"step", ColumnType::kInt, "Step, if the trace has steps.",
        &LauncherRow::step, Shown::kHidden}}};
  return columns;
}

}  // namespace lamina::analysis::ops
