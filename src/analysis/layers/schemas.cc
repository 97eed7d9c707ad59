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

// Verdicts are filled in where the whole trace is known.
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

const RowColumns<PassRow>& PassColumns() {
  static const RowColumns<PassRow> columns{
      "passes",
      "One row per forward pass or iteration.",
      {{"pass", ColumnType::kInt, "From 0, by start.", &PassRow::pass},
       {"device_index", ColumnType::kInt, "Device.", &PassRow::device,
        Shown::kHidden},
       {"stream", ColumnType::kInt, "Stream of its first layer.",
        &PassRow::stream, Shown::kHidden},
       {"start_us", ColumnType::kTime, "Since the first device event.",
        &PassRow::start},
       {"wall_us", ColumnType::kTime, "From first start to last end.",
        &PassRow::wall},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations.",
        &PassRow::kernel_time},
       {"busy_us", ColumnType::kTime, "Union of all streams.", &PassRow::busy},
       {"kernels", ColumnType::kInt, "Device events.", &PassRow::kernels},
       {"stage", ColumnType::kText,
        "prefill, decode, mixed; none: nothing speaks of serving; "
        "unknown: something does, but not which.",
        &PassRow::stage},
       {"stage_evidence", ColumnType::kText,
        "annotation, frames, attention, votes, or - for none.",
        &PassRow::stage_evidence, Shown::kHidden},
       {"batch", ColumnType::kInt, "Requests, from the annotation.",
        &PassRow::batch},
       {"tokens", ColumnType::kInt, "Tokens, from the annotation.",
        &PassRow::tokens},
       {"layers", ColumnType::kInt, "Layers of all stacks.", &PassRow::layers},
       {"evidence", ColumnType::kText,
        "What says that a pass begins here, with the strongest first: step, "
        "graph (another launch), module (called again), stack (one that the "
        "pass has begins again), edge kernels (embedding, sampling, loss), "
        "kernels between (that stand in gaps between layers only), idle, host "
        "waited, equal parts (as many layers in each); -: the first.",
        &PassRow::evidence, Shown::kHidden},
       {"cut", ColumnType::kBool,
        "First or last of the recording, with fewer layers than others.",
        &PassRow::cut, Shown::kHidden},
       {"graph_launches", ColumnType::kInt,
        "Graph launches that its kernels came from; 0: none.",
        &PassRow::graph_launches, Shown::kHidden},
       {"annotation", ColumnType::kText, "Verbatim.", &PassRow::annotation,
        Shown::kHidden}}};
  return columns;
}

const RowColumns<LayerRow>& LayerColumns() {
  static const RowColumns<LayerRow> columns = [] {
    RowColumns<LayerRow> out{
        "layers",
        "One row per layer; kernels outside layers are in orphans.",
        {{"pass", ColumnType::kInt, "Pass.", &LayerRow::pass},
         {"stack", ColumnType::kText, "Stack of layers.", &LayerRow::stack},
         {"layer", ColumnType::kInt, "From 0 in (pass, stack).",
          &LayerRow::layer},
         {"variant", ColumnType::kText,
          "Layers with the same kernels share a letter.", &LayerRow::variant},
         {"type", ColumnType::kText,
          "MHA (also where it is written out with a softmax), MLA or GDN "
          "attention or SSM scan, with MOE or FC; BLOCK: neither.",
          &LayerRow::type},
         {"type_by", ColumnType::kText,
          "What says so: module (classes in it), op (those that launched its "
          "kernels), kernel (their names).",
          &LayerRow::type_by, Shown::kHidden},
         {"stage", ColumnType::kText, "Of the pass.", &LayerRow::stage,
          Shown::kHidden},
         {"start_us", ColumnType::kTime, "Since the first device event.",
          &LayerRow::start},
         {"wall_us", ColumnType::kTime, "First start to last end.",
          &LayerRow::wall},
         {"kernel_time_us", ColumnType::kTime, "Sum of durations.",
          &LayerRow::kernel_time}}};
    for (size_t part = 0; part < kParts; ++part) {
      out.columns.push_back(
          {kPartColumns[part], ColumnType::kTime,
           "Part of kernel_time_us; the parts add up.",
           [part](const LayerRow& row) { return row.parts[part]; }});
    }
    for (const RowColumn<LayerRow>& column :
         std::initializer_list<RowColumn<LayerRow>>{
             {"gap_us", ColumnType::kTime, "Wall time without work.",
              &LayerRow::gap},
             {"kernels", ColumnType::kInt, "Device events.",
              &LayerRow::kernels},
             {"first_kernel", ColumnType::kInt,
              "Place of the first among the kernels of the device by start.",
              &LayerRow::first_kernel, Shown::kHidden},
             {"first_uid", ColumnType::kInt, "Event number of the first.",
              &LayerRow::first_uid, Shown::kHidden},
             {"module", ColumnType::kText, "Path, when it is known.",
              &LayerRow::module, Shown::kHidden},
             {"boundary", ColumnType::kText,
              "What says where it begins: module, norm or none.",
              &LayerRow::boundary, Shown::kHidden},
             {"exact", ColumnType::kBool,
              "Equal to its neighbours kernel by kernel, or from a module.",
              &LayerRow::exact, Shown::kHidden},
             {"confidence", ColumnType::kText,
              "certain (modules), high, medium or low; of the stack.",
              &LayerRow::confidence, Shown::kHidden},
             {"partial", ColumnType::kBool, "Cut by the recording.",
              &LayerRow::partial, Shown::kHidden},
             {"verdict", ColumnType::kText,
              "What bounds the time from its begin to that of the next layer "
              "of the pass, by the critical path to the end of the "
              "recording: host_bound, device_bound, comm_bound, copy_bound, "
              "unexplained_wait, or mixed; as in verdicts of lamina path.",
              &LayerRow::verdict},
             {"strength_percent", ColumnType::kReal,
              "Share of the largest class of that chain.", &LayerRow::strength,
              Shown::kHidden}})
      out.columns.push_back(column);
    return out;
  }();
  return columns;
}

const RowColumns<TypeRow>& TypeColumns() {
  static const RowColumns<TypeRow> columns{
      "layer_types",
      "Layers with the same kernels in the same stage.",
      {{"stack", ColumnType::kText, "Stack.", &TypeRow::stack},
       {"variant", ColumnType::kText, "Letter.", &TypeRow::variant},
       {"type", ColumnType::kText, "Type.", &TypeRow::type},
       {"stage", ColumnType::kText, "Stage.", &TypeRow::stage},
       {"layers", ColumnType::kInt, "How many.", &TypeRow::layers},
       {"kernel_time_us", ColumnType::kTime, "Sum over all of them.",
        &TypeRow::kernel_time},
       {"percent", ColumnType::kReal, "Share of all device time.",
        &TypeRow::percent, Shown::kBar},
       {"mean_us", ColumnType::kTime, "Mean kernel time.", &TypeRow::mean},
       {"p50_us", ColumnType::kTime, "Median kernel time.", &TypeRow::p50},
       {"p99_us", ColumnType::kTime, "99th percentile, nearest rank.",
        &TypeRow::p99},
       {"min_us", ColumnType::kTime, "Shortest.", &TypeRow::min,
        Shown::kHidden},
       {"max_us", ColumnType::kTime, "Longest.", &TypeRow::max, Shown::kHidden},
       {"mean_wall_us", ColumnType::kTime, "Mean wall time.",
        &TypeRow::mean_wall},
       {"kernels", ColumnType::kInt, "Device events of the first.",
        &TypeRow::kernels},
       {"outliers", ColumnType::kInt, "Layers above 1.5 times the median.",
        &TypeRow::outliers},
       {"module", ColumnType::kText,
        "Path of the module above the layers; tells stacks of one class "
        "apart.",
        &TypeRow::module, Shown::kHidden}}};
  return columns;
}

const RowColumns<StackRow>& StackColumns() {
  static const RowColumns<StackRow> columns{
      "layer_stacks",
      "Stacks of layers.",
      {{"stack", ColumnType::kText, "Class of the module, else a number.",
        &StackRow::stack},
       {"period", ColumnType::kInt, "Kernels of the repeated unit.",
        &StackRow::period},
       {"layers_per_unit", ColumnType::kInt, "Layers in the unit.",
        &StackRow::layers_per_unit, Shown::kHidden},
       {"pattern", ColumnType::kText,
        "Variants of the first pass in order: A3 B58.", &StackRow::pattern},
       {"layers_per_pass", ColumnType::kText,
        "Layers of a pass; several numbers when passes differ.",
        &StackRow::layers_per_pass},
       {"passes", ColumnType::kInt, "Passes that have it.", &StackRow::passes},
       {"layers", ColumnType::kInt, "Layers in all.", &StackRow::layers},
       {"percent", ColumnType::kReal, "Share of all device time.",
        &StackRow::percent, Shown::kBar},
       {"exact_percent", ColumnType::kReal, "Share of layers that are exact.",
        &StackRow::exact_percent, Shown::kPercent},
       {"boundary", ColumnType::kText, "What says where layers begin.",
        &StackRow::boundary},
       {"confidence", ColumnType::kText,
        "certain (modules), high, medium or low.", &StackRow::confidence}}};
  return columns;
}

const RowColumns<StageRow>& StageColumns() {
  static const RowColumns<StageRow> columns{
      "stage_kernel_type",
      "Device time by stage and type of kernel; all rows "
      "add up to all device time.",
      {{"stage", ColumnType::kText, "Stage; -: in no pass.", &StageRow::stage},
       {"kernel_type", ColumnType::kText,
        "Family of the kernel, as in the report; other: unknown.",
        &StageRow::kernel_type},
       {"classic_type", ColumnType::kText,
        "moe, attention, quantization, communication, linear, memory or "
        "other.",
        &StageRow::classic_type},
       {"kernels", ColumnType::kInt, "Device events.", &StageRow::kernels},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations.",
        &StageRow::kernel_time},
       {"percent_of_stage", ColumnType::kReal, "Share.",
        &StageRow::percent_of_stage, Shown::kPercent},
       {"percent", ColumnType::kReal, "Share of all device time.",
        &StageRow::percent, Shown::kBar}}};
  return columns;
}

const RowColumns<OrphanRow>& OrphanColumns() {
  static const RowColumns<OrphanRow> columns{
      "orphans",
      "Device events in no layer.",
      {{"device_index", ColumnType::kInt, "Device.", &OrphanRow::device,
        Shown::kHidden},
       {"stream", ColumnType::kInt, "Stream.", &OrphanRow::stream,
        Shown::kHidden},
       {"reason", ColumnType::kText,
        "prologue (before the first layer of a pass), epilogue (after "
        "the last), between (two stacks), no_pass.",
        &OrphanRow::reason},
       {"kernel", ColumnType::kText, "Name.", &OrphanRow::kernel},
       {"kernels", ColumnType::kInt, "Device events.", &OrphanRow::kernels},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations.",
        &OrphanRow::kernel_time},
       {"percent", ColumnType::kReal, "Share of all device time.",
        &OrphanRow::percent, Shown::kBar}}};
  return columns;
}

const RowColumns<LayerModel::Check>& CheckColumns() {
  static const RowColumns<LayerModel::Check> columns{
      "layer_check",
      "Layers by modules beside layers by repeats.",
      {{"where", ColumnType::kText, "Device.", &LayerModel::Check::name},
       {"layers_module", ColumnType::kInt, "By modules.",
        &LayerModel::Check::by_module},
       {"layers_repeat", ColumnType::kInt, "By repeats.",
        &LayerModel::Check::by_repeat},
       {"layers_classic", ColumnType::kInt, "By names of norms.",
        &LayerModel::Check::by_names},
       {"boundaries_equal", ColumnType::kInt, "At the same kernel.",
        &LayerModel::Check::equal},
       {"boundaries_within_2", ColumnType::kInt, "Within two kernels.",
        &LayerModel::Check::near}}};
  return columns;
}

}  // namespace lamina::analysis::layers
