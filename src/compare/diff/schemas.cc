// SPDX-License-Identifier: Apache-2.0
#include "compare/diff/schemas.h"

namespace lamina::analysis::diff {

const RowColumns<DiffTotalsRow>& TotalsColumns() {
  static const RowColumns<DiffTotalsRow> columns{
      "diff_totals",
      "Device time of each side: kernel_time = listed + unchanged + unlinked, "
      "total = busy + idle.",
      {{"side", ColumnType::kText, "a or b, as in the other tables.",
        &DiffTotalsRow::side},
       {"input", ColumnType::kText, "The trace.", &DiffTotalsRow::input,
        Shown::kHidden},
       {"device", ColumnType::kText, "Name of its device.",
        &DiffTotalsRow::device, Shown::kHidden},
       {"steps", ColumnType::kInt, "Steps in it.", &DiffTotalsRow::steps,
        Shown::kHidden},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations.",
        &DiffTotalsRow::kernel_time},
       {"listed_us", ColumnType::kTime, "Part of that in diff_ops.",
        &DiffTotalsRow::listed},
       {"unchanged_us", ColumnType::kTime,
        "Part of ops with the same count, kernels and time on both sides.",
        &DiffTotalsRow::unchanged},
       {"unlinked_us", ColumnType::kTime, "Part without a launch.",
        &DiffTotalsRow::unlinked},
       {"busy_us", ColumnType::kTime, "Time in which the device worked.",
        &DiffTotalsRow::busy},
       {"idle_us", ColumnType::kTime, "Time in which it did not.",
        &DiffTotalsRow::idle},
       {"total_us", ColumnType::kTime, "From its first start to its last end.",
        &DiffTotalsRow::total},
       {"device_slices", ColumnType::kInt, "Kernels, copies and fills.",
        &DiffTotalsRow::device_slices, Shown::kHidden}}};
  return columns;
}

const RowColumns<DiffCauseRow>& CauseColumns() {
  static const RowColumns<DiffCauseRow> columns{
      "diff_causes",
      "Why the total time differs; the deltas add up to the difference.",
      {{"cause", ColumnType::kText,
        "Op; \"(other ops)\", \"(unlinked)\": work without a launch, "
        "\"(overlap)\": busy time less the sum of durations, \"(idle)\".",
        &DiffCauseRow::cause},
       {"change", ColumnType::kText, "As kind in diff_ops.",
        &DiffCauseRow::change},
       {"count_a", ColumnType::kInt, "Calls in A.", &DiffCauseRow::count_a},
       {"count_b", ColumnType::kInt, "Calls in B.", &DiffCauseRow::count_b},
       {"time_a_us", ColumnType::kTime, "Time in A.", &DiffCauseRow::time_a},
       {"time_b_us", ColumnType::kTime, "Time in B.", &DiffCauseRow::time_b},
       {"delta_us", ColumnType::kTime, "B less A.", &DiffCauseRow::delta},
       {"percent", ColumnType::kReal, "The delta as a share of A's total time.",
        &DiffCauseRow::percent, Shown::kPercent}}};
  return columns;
}

const RowColumns<DiffOpRow>& OpColumns() {
  static const RowColumns<DiffOpRow> columns{
      "diff_ops",
      "Ops that differ, by module and shapes; largest difference first.",
      {{"op", ColumnType::kText,
        "Op that launches; an API call with its kernel where there is none.",
        &DiffOpRow::op},
       {"module", ColumnType::kText, "Path of its nn.Module.",
        &DiffOpRow::module},
       {"shapes", ColumnType::kText,
        "Shapes of its inputs, JSON; of A where both sides have it.",
        &DiffOpRow::shapes},
       {"kind", ColumnType::kText,
        "changed: time or count; only_a, only_b; other_kernel; other_shape: "
        "other shapes; other_dtype: other element types.",
        &DiffOpRow::kind},
       {"delta_us", ColumnType::kTime, "Device time in B less that in A.",
        &DiffOpRow::delta},
       {"kernel_time_a_us", ColumnType::kTime,
        "Sum of the durations of its device work in A.",
        &DiffOpRow::kernel_time_a},
       {"kernel_time_b_us", ColumnType::kTime, "The same in B.",
        &DiffOpRow::kernel_time_b},
       {"count_a", ColumnType::kInt, "Calls in A.", &DiffOpRow::count_a},
       {"count_b", ColumnType::kInt, "Calls in B.", &DiffOpRow::count_b},
       {"ratio", ColumnType::kReal,
        "Time in B by time in A; empty unless both have it.",
        &DiffOpRow::ratio},
       {"module_b", ColumnType::kText,
        "Path of the module in B where it differs.", &DiffOpRow::module_b,
        Shown::kHidden},
       {"shapes_b", ColumnType::kText, "Shapes in B where they differ.",
        &DiffOpRow::shapes_b, Shown::kHidden},
       {"types_a", ColumnType::kText, "Types of its inputs in A.",
        &DiffOpRow::types_a, Shown::kHidden},
       {"types_b", ColumnType::kText, "The same in B.", &DiffOpRow::types_b,
        Shown::kHidden},
       {"uid_a", ColumnType::kInt, "Event number of the first call in A.",
        &DiffOpRow::uid_a, Shown::kHidden},
       {"uid_b", ColumnType::kInt, "The same in B.", &DiffOpRow::uid_b,
        Shown::kHidden}}};
  return columns;
}

const RowColumns<DiffKernelRow>& KernelColumns() {
  static const RowColumns<DiffKernelRow> columns{
      "diff_kernels",
      "Kernels that differ, by op; largest difference first.",
      {{"op", ColumnType::kText, "As in diff_ops; empty: without a launch.",
        &DiffKernelRow::op},
       {"kernel_a", ColumnType::kText, "Kernel in A; empty: only in B.",
        &DiffKernelRow::kernel_a},
       {"kernel_b", ColumnType::kText, "Kernel in B; empty: only in A.",
        &DiffKernelRow::kernel_b},
       {"delta_us", ColumnType::kTime, "Device time in B less that in A.",
        &DiffKernelRow::delta},
       {"kernel_time_a_us", ColumnType::kTime, "Sum of durations in A.",
        &DiffKernelRow::kernel_time_a},
       {"kernel_time_b_us", ColumnType::kTime, "Sum of durations in B.",
        &DiffKernelRow::kernel_time_b},
       {"count_a", ColumnType::kInt, "Times it ran in A.",
        &DiffKernelRow::count_a},
       {"count_b", ColumnType::kInt, "Times it ran in B.",
        &DiffKernelRow::count_b}}};
  return columns;
}

const RowColumns<DiffByRow>& ByColumns() {
  static const RowColumns<DiffByRow> columns{
      "diff_by",
      "Differences along one dimension each.",
      {{"dimension", ColumnType::kText,
        "category, module, layer or timeline. The times of the first three "
        "add up to kernel_time_us, of the last to total_us.",
        &DiffByRow::dimension},
       {"key", ColumnType::kText, "What is compared.", &DiffByRow::key},
       {"count_a", ColumnType::kInt, "Kernels, copies and fills in A.",
        &DiffByRow::count_a},
       {"count_b", ColumnType::kInt, "The same in B.", &DiffByRow::count_b},
       {"time_a_us", ColumnType::kTime, "Time in A.", &DiffByRow::time_a},
       {"time_b_us", ColumnType::kTime, "Time in B.", &DiffByRow::time_b},
       {"delta_us", ColumnType::kTime, "B less A.", &DiffByRow::delta}}};
  return columns;
}

const RowColumns<DiffCallRow>& CallColumns() {
  static const RowColumns<DiffCallRow> columns{
      "diff_calls",
      "Calls of CUDA or HIP whose number or host time differs.",
      {{"call", ColumnType::kText,
        "Name without \"cuda\" and \"hip\"; LaunchKernel stands for all its "
        "variants.",
        &DiffCallRow::call},
       {"count_a", ColumnType::kInt, "Calls in A.", &DiffCallRow::count_a},
       {"count_b", ColumnType::kInt, "Calls in B.", &DiffCallRow::count_b},
       {"launched_a", ColumnType::kInt, "Device work they launched in A.",
        &DiffCallRow::launched_a},
       {"launched_b", ColumnType::kInt, "The same in B.",
        &DiffCallRow::launched_b},
       {"host_a_us", ColumnType::kTime, "Host time in A.",
        &DiffCallRow::host_a},
       {"host_b_us", ColumnType::kTime, "Host time in B.",
        &DiffCallRow::host_b},
       {"delta_us", ColumnType::kTime, "Host time in B less A.",
        &DiffCallRow::delta}}};
  return columns;
}

const RowColumns<DiffMovedRow>& MovedColumns() {
  static const RowColumns<DiffMovedRow> columns{
      "diff_moved",
      "What both sides do, but at another place among its neighbours.",
      {{"name", ColumnType::kText, "Op or module.", &DiffMovedRow::name},
       {"module", ColumnType::kText, "Path of its nn.Module.",
        &DiffMovedRow::module},
       {"kernel_time_a_us", ColumnType::kTime, "Device time inside in A.",
        &DiffMovedRow::kernel_time_a},
       {"kernel_time_b_us", ColumnType::kTime, "The same in B.",
        &DiffMovedRow::kernel_time_b},
       {"uid_a", ColumnType::kInt, "Event number in A.", &DiffMovedRow::uid_a},
       {"uid_b", ColumnType::kInt, "Event number in B.",
        &DiffMovedRow::uid_b}}};
  return columns;
}

}  // namespace lamina::analysis::diff
