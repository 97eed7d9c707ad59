// SPDX-License-Identifier: Apache-2.0
#include "compare/diff/schemas.h"

namespace lamina::analysis::diff {

Schema TotalsSchema() {
  return {
      "diff_totals",
      "Device time of each side: kernel_time = listed + unchanged + unlinked, "
      "total = busy + idle.",
      {{"side", ColumnType::kText, "a or b, as in the other tables."},
       {"input", ColumnType::kText, "The trace.", Shown::kHidden},
       {"device", ColumnType::kText, "Name of its device.", Shown::kHidden},
       {"steps", ColumnType::kInt, "Steps in it.", Shown::kHidden},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations."},
       {"listed_us", ColumnType::kTime, "Part of that in diff_ops."},
       {"unchanged_us", ColumnType::kTime,
        "Part of ops with the same count, kernels and time on both sides."},
       {"unlinked_us", ColumnType::kTime, "Part without a launch."},
       {"busy_us", ColumnType::kTime, "Time in which the device worked."},
       {"idle_us", ColumnType::kTime, "Time in which it did not."},
       {"total_us", ColumnType::kTime, "From its first start to its last end."},
       {"device_slices", ColumnType::kInt, "Kernels, copies and fills.",
        Shown::kHidden}}};
}

Schema CausesSchema() {
  return {"diff_causes",
          "Why the total time differs; the deltas add up to the difference.",
          {{"cause", ColumnType::kText,
            "Op; \"(other ops)\", \"(unlinked)\": work without a launch, "
            "\"(overlap)\": busy time less the sum of durations, \"(idle)\"."},
           {"change", ColumnType::kText, "As kind in diff_ops."},
           {"count_a", ColumnType::kInt, "Calls in A."},
           {"count_b", ColumnType::kInt, "Calls in B."},
           {"time_a_us", ColumnType::kTime, "Time in A."},
           {"time_b_us", ColumnType::kTime, "Time in B."},
           {"delta_us", ColumnType::kTime, "B less A."},
           {"percent", ColumnType::kReal,
            "The delta as a share of A's total time.", Shown::kPercent}}};
}

Schema OpsSchema() {
  return {
      "diff_ops",
      "Ops that differ, by module and shapes; largest difference first.",
      {{"op", ColumnType::kText,
        "Op that launches; an API call with its kernel where there is none."},
       {"module", ColumnType::kText, "Path of its nn.Module."},
       {"shapes", ColumnType::kText,
        "Shapes of its inputs, JSON; of A where both sides have it."},
       {"kind", ColumnType::kText,
        "changed: time or count; only_a, only_b; other_kernel; other_shape: "
        "other shapes or types."},
       {"delta_us", ColumnType::kTime, "Device time in B less that in A."},
       {"kernel_time_a_us", ColumnType::kTime,
        "Sum of the durations of its device work in A."},
       {"kernel_time_b_us", ColumnType::kTime, "The same in B."},
       {"count_a", ColumnType::kInt, "Calls in A."},
       {"count_b", ColumnType::kInt, "Calls in B."},
       {"ratio", ColumnType::kReal,
        "Time in B by time in A; empty unless both have it."},
       {"module_b", ColumnType::kText,
        "Path of the module in B where it differs.", Shown::kHidden},
       {"shapes_b", ColumnType::kText, "Shapes in B where they differ.",
        Shown::kHidden},
       {"types_a", ColumnType::kText, "Types of its inputs in A.",
        Shown::kHidden},
       {"types_b", ColumnType::kText, "The same in B.", Shown::kHidden},
       {"uid_a", ColumnType::kInt, "Event number of the first call in A.",
        Shown::kHidden},
       {"uid_b", ColumnType::kInt, "The same in B.", Shown::kHidden}}};
}

Schema KernelsSchema() {
  return {
      "diff_kernels",
      "Kernels that differ, by op; largest difference first.",
      {{"op", ColumnType::kText, "As in diff_ops; empty: without a launch."},
       {"kernel_a", ColumnType::kText, "Kernel in A; empty: only in B."},
       {"kernel_b", ColumnType::kText, "Kernel in B; empty: only in A."},
       {"delta_us", ColumnType::kTime, "Device time in B less that in A."},
       {"kernel_time_a_us", ColumnType::kTime, "Sum of durations in A."},
       {"kernel_time_b_us", ColumnType::kTime, "Sum of durations in B."},
       {"count_a", ColumnType::kInt, "Times it ran in A."},
       {"count_b", ColumnType::kInt, "Times it ran in B."}}};
}

Schema BySchema() {
  return {"diff_by",
          "Differences along one dimension each.",
          {{"dimension", ColumnType::kText,
            "category, module, layer or timeline. The times of the first three "
            "add up to kernel_time_us, of the last to total_us."},
           {"key", ColumnType::kText, "What is compared."},
           {"count_a", ColumnType::kInt, "Kernels, copies and fills in A."},
           {"count_b", ColumnType::kInt, "The same in B."},
           {"time_a_us", ColumnType::kTime, "Time in A."},
           {"time_b_us", ColumnType::kTime, "Time in B."},
           {"delta_us", ColumnType::kTime, "B less A."}}};
}

Schema CallsSchema() {
  return {
      "diff_calls",
      "Calls of CUDA or HIP whose number or host time differs.",
      {{"call", ColumnType::kText,
        "Name without \"cuda\" and \"hip\"; LaunchKernel stands for all its "
        "variants."},
       {"count_a", ColumnType::kInt, "Calls in A."},
       {"count_b", ColumnType::kInt, "Calls in B."},
       {"launched_a", ColumnType::kInt, "Device work they launched in A."},
       {"launched_b", ColumnType::kInt, "The same in B."},
       {"host_a_us", ColumnType::kTime, "Host time in A."},
       {"host_b_us", ColumnType::kTime, "Host time in B."},
       {"delta_us", ColumnType::kTime, "Host time in B less A."}}};
}

Schema MovedSchema() {
  return {"diff_moved",
          "What both sides do, but at another place among its neighbours.",
          {{"name", ColumnType::kText, "Op or module."},
           {"module", ColumnType::kText, "Path of its nn.Module."},
           {"kernel_time_a_us", ColumnType::kTime, "Device time inside in A."},
           {"kernel_time_b_us", ColumnType::kTime, "The same in B."},
           {"uid_a", ColumnType::kInt, "Event number in A."},
           {"uid_b", ColumnType::kInt, "Event number in B."}}};
}

}  // namespace lamina::analysis::diff
