// SPDX-License-Identifier: Apache-2.0
#include "analysis/ops/schemas.h"

namespace lamina::analysis::ops {

Schema CategoriesSchema() {
  return {
      "op_categories",
      "Device time by family of op: categories + collectives + unlinked = "
      "all.",
      {{"category", ColumnType::kText, "Family of the op or kernel."},
       {"group", ColumnType::kText, "Group that shares a colour.",
        Shown::kHidden},
       {"kind", ColumnType::kText,
        "category, collective, or unlinked (work without a launch in the "
        "trace)."},
       {"launchers", ColumnType::kInt, "Calls that launched the work."},
       {"kernels", ColumnType::kInt, "Device slices, copies and fills too."},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations."},
       {"busy_us", ColumnType::kTime, "Length of the union of them."},
       {"percent", ColumnType::kReal, "Share of the sum over all rows.",
        Shown::kBar},
       {"cumulative_percent", ColumnType::kReal, "Running share.",
        Shown::kHidden}}};
}

Schema OpsSchema() {
  return {
      "ops",
      "Device time by op, without collectives.",
      {{"op", ColumnType::kText,
        "Op that launched the work, or the API call without one."},
       {"kernel", ColumnType::kText,
        "Kernel of a call without an op, so that unrelated kernels share no "
        "row; empty for ops and graph launches."},
       {"family", ColumnType::kText, "Family with most of the time."},
       {"count", ColumnType::kInt, "Calls."},
       {"kernels", ColumnType::kInt, "Device slices they launched."},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations."},
       {"percent", ColumnType::kReal,
        "Share of all device time, collectives and unlinked work too.",
        Shown::kBar},
       {"busy_us", ColumnType::kTime, "Sum over calls of the union.",
        Shown::kHidden},
       {"subtree_time_us", ColumnType::kTime,
        "Sum of durations of everything below the calls.", Shown::kHidden},
       {"host_us", ColumnType::kTime, "Host time of the calls.",
        Shown::kHidden},
       {"cumulative_percent", ColumnType::kReal, "Running share.",
        Shown::kHidden},
       {"first_uid", ColumnType::kInt, "Event number of the first call.",
        Shown::kHidden}}};
}

Schema ShapesSchema() {
  return {
      "op_shapes",
      "Ops by their arguments.",
      {{"op", ColumnType::kText, "Op, or API call without one."},
       {"input_dims", ColumnType::kText, "Shapes by argument, JSON."},
       {"kernel", ColumnType::kText,
        "Kernels of the first call, at most four names."},
       {"family", ColumnType::kText, "Family with most of the time."},
       {"count", ColumnType::kInt, "Calls."},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations."},
       {"percent", ColumnType::kReal, "Share of all device time.",
        Shown::kPercent},
       {"mean_us", ColumnType::kTime, "Mean device time of a call."},
       {"p50_us", ColumnType::kTime, "Median.", Shown::kHidden},
       {"std_us", ColumnType::kTime, "Standard deviation (n - 1).",
        Shown::kHidden},
       {"min_us", ColumnType::kTime, "Shortest.", Shown::kHidden},
       {"max_us", ColumnType::kTime, "Longest.", Shown::kHidden},
       {"busy_us", ColumnType::kTime, "Sum over calls of the union.",
        Shown::kHidden},
       {"kernels", ColumnType::kInt, "Device slices in all.", Shown::kHidden},
       {"varying_kernels", ColumnType::kInt,
        "Calls with another number of kernels than the first.", Shown::kHidden},
       {"input_types", ColumnType::kText, "Types by argument, JSON.",
        Shown::kHidden},
       {"input_strides", ColumnType::kText, "Strides by argument, JSON.",
        Shown::kHidden},
       {"concrete_inputs", ColumnType::kText, "Scalar arguments as text, JSON.",
        Shown::kHidden},
       {"first_uid", ColumnType::kInt, "Event number of the first call.",
        Shown::kHidden}}};
}

Schema LaunchersSchema() {
  return {"launchers",
          "Every call that launched device work, in order of time.",
          {{"uid", ColumnType::kInt, "Event number of the call."},
           {"op", ColumnType::kText, "Op, or API call without one."},
           {"module", ColumnType::kText, "Module path, if known."},
           {"start_us", ColumnType::kTime, "From the first event."},
           {"host_us", ColumnType::kTime, "Host time of the call."},
           {"kernels", ColumnType::kInt, "Device slices it launched itself."},
           {"kernel_time_us", ColumnType::kTime, "Sum of their durations."},
           {"busy_us", ColumnType::kTime, "Length of their union."},
           {"launch_latency_us", ColumnType::kTime,
            "From the start of the first API call to the start of its work."},
           {"step", ColumnType::kInt, "Step, if the trace has steps.",
            Shown::kHidden}}};
}

}  // namespace lamina::analysis::ops
