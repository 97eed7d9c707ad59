// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/schemas.h"

namespace lamina::analysis::layers {
namespace {

constexpr const char* kPartNames[kParts] = {
    "attention",     "gemm",         "moe",  "norm",
    "communication", "quantization", "other"};

constexpr const char* kPartColumns[kParts] = {
    "attention_us",     "gemm_us",         "moe_us",  "norm_us",
    "communication_us", "quantization_us", "other_us"};

}  // namespace

std::string_view PartName(Part part) {
  return kPartNames[static_cast<size_t>(part)];
}

Part PartOf(std::string_view family) {
  if (family == "attention" || family == "ssm") return Part::kAttention;
  if (family == "gemm") return Part::kGemm;
  if (family == "moe") return Part::kMoe;
  if (family == "norm") return Part::kNorm;
  if (family == "communication") return Part::kCommunication;
  if (family == "quantization") return Part::kQuantization;
  return Part::kOther;
}

Part PartOf(const Context& context, SliceId s) {
  if (context.device.communication(s)) return Part::kCommunication;
  return PartOf(context.catalog.family(context.device.family(s)).name);
}

Schema PassSchema() {
  return {
      "passes",
      "One row per forward pass or iteration.",
      {{"pass", ColumnType::kInt, "From 0, by start."},
       {"device", ColumnType::kInt, "Device.", Shown::kHidden},
       {"stream", ColumnType::kInt, "Stream of its first layer.",
        Shown::kHidden},
       {"start_us", ColumnType::kTime, "Since the first device event."},
       {"wall_us", ColumnType::kTime, "From first start to last end."},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations."},
       {"busy_us", ColumnType::kTime, "Union of all streams."},
       {"kernels", ColumnType::kInt, "Device events."},
       {"stage", ColumnType::kText,
        "prefill, decode, mixed; none: nothing speaks of serving; "
        "unknown: something does, but not which."},
       {"stage_evidence", ColumnType::kText,
        "annotation, frames, attention, votes, or - for none.", Shown::kHidden},
       {"batch", ColumnType::kInt, "Requests, from the annotation."},
       {"tokens", ColumnType::kInt, "Tokens, from the annotation."},
       {"layers", ColumnType::kInt, "Layers of all stacks."},
       {"evidence", ColumnType::kText,
        "What says that a pass begins here, with the strongest first: step, "
        "graph (another launch), module (called again), stack (one that the "
        "pass has begins again), edge kernels (embedding, sampling, loss), "
        "kernels between (that stand in gaps between layers only), idle, host "
        "waited, equal parts (as many layers in each); -: the first.",
        Shown::kHidden},
       {"cut", ColumnType::kBool,
        "First or last of the recording, with fewer layers than others.",
        Shown::kHidden},
       {"graph_launches", ColumnType::kInt,
        "Graph launches that its kernels came from; 0: none.", Shown::kHidden},
       {"annotation", ColumnType::kText, "Verbatim.", Shown::kHidden}}};
}

Schema LayerSchema() {
  Schema schema{
      "layers",
      "One row per layer; kernels outside layers are in orphans.",
      {{"pass", ColumnType::kInt, "Pass."},
       {"stack", ColumnType::kText, "Stack of layers."},
       {"layer", ColumnType::kInt, "From 0 in (pass, stack)."},
       {"variant", ColumnType::kText,
        "Layers with the same kernels share a letter."},
       {"type", ColumnType::kText,
        "MHA (also where it is written out with a softmax), MLA or GDN "
        "attention or SSM scan, with MOE or FC; BLOCK: neither."},
       {"type_by", ColumnType::kText,
        "What says so: module (classes in it), op (those that launched its "
        "kernels), kernel (their names).",
        Shown::kHidden},
       {"stage", ColumnType::kText, "Of the pass.", Shown::kHidden},
       {"start_us", ColumnType::kTime, "Since the first device event."},
       {"wall_us", ColumnType::kTime, "First start to last end."},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations."}}};
  for (const char* part : kPartColumns) {
    schema.columns.push_back(
        {part, ColumnType::kTime, "Part of kernel_time_us; the parts add up."});
  }
  for (Column column :
       {Column{"gap_us", ColumnType::kTime, "Wall time without work."},
        Column{"kernels", ColumnType::kInt, "Device events."},
        Column{"first_kernel", ColumnType::kInt,
               "Place of the first among the kernels of the device by start.",
               Shown::kHidden},
        Column{"first_uid", ColumnType::kInt, "Event number of the first.",
               Shown::kHidden},
        Column{"module", ColumnType::kText, "Path, when it is known.",
               Shown::kHidden},
        Column{"boundary", ColumnType::kText,
               "What says where it begins: module, norm or none.",
               Shown::kHidden},
        Column{"exact", ColumnType::kBool,
               "Equal to its neighbours kernel by kernel, or from a module.",
               Shown::kHidden},
        Column{"confidence", ColumnType::kText,
               "certain (modules), high, medium or low; of the stack.",
               Shown::kHidden},
        Column{"partial", ColumnType::kBool, "Cut by the recording.",
               Shown::kHidden},
        Column{"verdict", ColumnType::kText,
               "What bounds the time from its begin to that of the next layer "
               "of the pass, by the chain of last arrivals to the end of the "
               "recording: host_bound, device_bound, comm_bound, copy_bound, "
               "unexplained_wait, or mixed; as in verdicts of lamina path."},
        Column{"strength_percent", ColumnType::kReal,
               "Share of the largest class of that chain.", Shown::kHidden}})
    schema.columns.push_back(std::move(column));
  return schema;
}

Schema TypeSchema() {
  return {
      "layer_types",
      "Layers with the same kernels in the same stage.",
      {{"stack", ColumnType::kText, "Stack."},
       {"variant", ColumnType::kText, "Letter."},
       {"type", ColumnType::kText, "Type."},
       {"stage", ColumnType::kText, "Stage."},
       {"layers", ColumnType::kInt, "How many."},
       {"kernel_time_us", ColumnType::kTime, "Sum over all of them."},
       {"percent", ColumnType::kReal, "Share of all device time.", Shown::kBar},
       {"mean_us", ColumnType::kTime, "Mean kernel time."},
       {"p50_us", ColumnType::kTime, "Median kernel time."},
       {"p99_us", ColumnType::kTime, "99th percentile, nearest rank."},
       {"min_us", ColumnType::kTime, "Shortest.", Shown::kHidden},
       {"max_us", ColumnType::kTime, "Longest.", Shown::kHidden},
       {"mean_wall_us", ColumnType::kTime, "Mean wall time."},
       {"kernels", ColumnType::kInt, "Device events of the first."},
       {"outliers", ColumnType::kInt, "Layers above 1.5 times the median."},
       {"module", ColumnType::kText,
        "Path of the module above the layers; tells stacks of one class "
        "apart.",
        Shown::kHidden}}};
}

Schema StackSchema() {
  return {
      "layer_stacks",
      "Stacks of layers.",
      {{"stack", ColumnType::kText, "Class of the module, else a number."},
       {"period", ColumnType::kInt, "Kernels of the repeated unit."},
       {"layers_per_unit", ColumnType::kInt, "Layers in the unit.",
        Shown::kHidden},
       {"pattern", ColumnType::kText,
        "Variants of the first pass in order: A3 B58."},
       {"layers_per_pass", ColumnType::kText,
        "Layers of a pass; several numbers when passes differ."},
       {"passes", ColumnType::kInt, "Passes that have it."},
       {"layers", ColumnType::kInt, "Layers in all."},
       {"percent", ColumnType::kReal, "Share of all device time.", Shown::kBar},
       {"exact_percent", ColumnType::kReal, "Share of layers that are exact.",
        Shown::kPercent},
       {"boundary", ColumnType::kText, "What says where layers begin."},
       {"confidence", ColumnType::kText,
        "certain (modules), high, medium or low."}}};
}

Schema StageSchema() {
  return {"stage_kernel_type",
          "Device time by stage and type of kernel; all rows "
          "add up to all device time.",
          {{"stage", ColumnType::kText, "Stage; -: in no pass."},
           {"kernel_type", ColumnType::kText,
            "Family of the kernel, as in the report; other: unknown."},
           {"classic_type", ColumnType::kText,
            "moe, attention, quantization, communication, linear, memory or "
            "other."},
           {"kernels", ColumnType::kInt, "Device events."},
           {"kernel_time_us", ColumnType::kTime, "Sum of durations."},
           {"percent_of_stage", ColumnType::kReal, "Share.", Shown::kPercent},
           {"percent", ColumnType::kReal, "Share of all device time.",
            Shown::kBar}}};
}

Schema OrphanSchema() {
  return {"orphans",
          "Device events in no layer.",
          {{"device", ColumnType::kInt, "Device.", Shown::kHidden},
           {"stream", ColumnType::kInt, "Stream.", Shown::kHidden},
           {"reason", ColumnType::kText,
            "prologue (before the first layer of a pass), epilogue (after "
            "the last), between (two stacks), no_pass."},
           {"kernel", ColumnType::kText, "Name."},
           {"kernels", ColumnType::kInt, "Device events."},
           {"kernel_time_us", ColumnType::kTime, "Sum of durations."},
           {"percent", ColumnType::kReal, "Share of all device time.",
            Shown::kBar}}};
}

Schema CheckSchema() {
  return {"layer_check",
          "Layers by modules beside layers by repeats.",
          {{"where", ColumnType::kText, "Device."},
           {"layers_module", ColumnType::kInt, "By modules."},
           {"layers_repeat", ColumnType::kInt, "By repeats."},
           {"layers_classic", ColumnType::kInt, "By names of norms."},
           {"boundaries_equal", ColumnType::kInt, "At the same kernel."},
           {"boundaries_within_2", ColumnType::kInt, "Within two kernels."}}};
}

}  // namespace lamina::analysis::layers
