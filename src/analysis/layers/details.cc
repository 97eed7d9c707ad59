// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/details.h"

#include <algorithm>
#include <map>

#include "analysis/common/stats.h"
#include "analysis/layers/labels.h"
#include "analysis/layers/lanes.h"
#include "table/row_columns.h"

namespace lamina::analysis::layers {
namespace {

constexpr size_t kNames = 25;

struct KernelRow {
  uint32_t pass;
  std::string_view stack;
  uint32_t layer;
  int64_t position;
  std::string_view kernel, short_name, part, kernel_type, rule, initial_stage,
      stage, op;
  std::string module;
  int64_t start, dur;
  double percent;
  int64_t gap_before;
  std::string grid, block;
  uint32_t uid;
};
const RowColumns<KernelRow>& KernelColumns() {
  static const RowColumns<KernelRow> columns{
      "layer_kernels",
      "Kernels of the layers that --layer names, of the first pass.",
      {{"pass", ColumnType::kInt, "Pass.", &KernelRow::pass, Shown::kHidden},
       {"stack", ColumnType::kText, "Stack.", &KernelRow::stack,
        Shown::kHidden},
       {"layer", ColumnType::kInt, "Layer.", &KernelRow::layer},
       {"position", ColumnType::kInt, "From 0.", &KernelRow::position},
       {"kernel", ColumnType::kText, "Name.", &KernelRow::kernel},
       {"short_name", ColumnType::kText, "By the rules.",
        &KernelRow::short_name, Shown::kHidden},
       {"part", ColumnType::kText, "What it does for the layer.",
        &KernelRow::part},
       {"kernel_type", ColumnType::kText, "Family.", &KernelRow::kernel_type,
        Shown::kHidden},
       {"rule", ColumnType::kText, "Rule that says the type.", &KernelRow::rule,
        Shown::kHidden},
       {"initial_stage", ColumnType::kText, "By its name alone.",
        &KernelRow::initial_stage, Shown::kHidden},
       {"stage", ColumnType::kText, "Of its layer.", &KernelRow::stage,
        Shown::kHidden},
       {"op", ColumnType::kText, "Op that launched it.", &KernelRow::op},
       {"module", ColumnType::kText, "Module that launched it.",
        &KernelRow::module, Shown::kHidden},
       {"start_us", ColumnType::kTime, "Since the first device event.",
        &KernelRow::start, Shown::kHidden},
       {"dur_us", ColumnType::kTime, "Duration.", &KernelRow::dur},
       {"percent", ColumnType::kReal, "Share of the layer.",
        &KernelRow::percent, Shown::kBar},
       {"gap_before_us", ColumnType::kTime,
        "Idle time before it inside the layer.", &KernelRow::gap_before,
        Shown::kHidden},
       {"grid", ColumnType::kText, "Blocks.", &KernelRow::grid, Shown::kHidden},
       {"block", ColumnType::kText, "Threads of a block.", &KernelRow::block,
        Shown::kHidden},
       {"uid", ColumnType::kInt, "Event number.", &KernelRow::uid,
        Shown::kHidden}}};
  return columns;
}

struct VoteRow {
  uint32_t layer;
  std::string_view type, stage, initial_stage;
  size_t kernels;
  int64_t kernel_time;
};
const RowColumns<VoteRow>& VoteColumns() {
  static const RowColumns<VoteRow> columns{
      "layer_votes",
      "What the kernels of the layers that --debug-layers names say of "
      "the stage.",
      {{"layer", ColumnType::kInt, "Layer.", &VoteRow::layer},
       {"type", ColumnType::kText, "Type of the layer.", &VoteRow::type},
       {"stage", ColumnType::kText, "Stage of the layer.", &VoteRow::stage},
       {"initial_stage", ColumnType::kText, "What kernels say.",
        &VoteRow::initial_stage},
       {"kernels", ColumnType::kInt, "How many.", &VoteRow::kernels},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations.",
        &VoteRow::kernel_time}}};
  return columns;
}

struct DebugRow {
  uint32_t layer;
  std::string_view kernel, short_name, initial_stage, stage, type_rule,
      stage_rule;
  int64_t dur;
};
const RowColumns<DebugRow>& DebugColumns() {
  static const RowColumns<DebugRow> columns{
      "layer_debug",
      "The longest kernels of these layers, with the rules that decided.",
      {{"layer", ColumnType::kInt, "Layer.", &DebugRow::layer},
       {"kernel", ColumnType::kText, "Name.", &DebugRow::kernel},
       {"short_name", ColumnType::kText, "By the rules.",
        &DebugRow::short_name},
       {"initial_stage", ColumnType::kText, "What the kernel says.",
        &DebugRow::initial_stage},
       {"stage", ColumnType::kText, "What the layer says.", &DebugRow::stage},
       {"type_rule", ColumnType::kText, "Rule for its type; -: none.",
        &DebugRow::type_rule},
       {"stage_rule", ColumnType::kText, "Rule for its stage; -: none.",
        &DebugRow::stage_rule},
       {"dur_us", ColumnType::kTime, "Duration.", &DebugRow::dur}}};
  return columns;
}

struct NameRow {
  std::string_view kernel;
  size_t kernels;
  int64_t kernel_time;
  std::string_view classic_type, type_rule, stage_rule, short_name, short_rule;
};
const RowColumns<NameRow>& NameColumns() {
  static const RowColumns<NameRow> columns{
      "name_rules",
      "The rules behind the names that take the most time.",
      {{"kernel", ColumnType::kText, "Name.", &NameRow::kernel},
       {"kernels", ColumnType::kInt, "Device events.", &NameRow::kernels},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations.",
        &NameRow::kernel_time},
       {"classic_type", ColumnType::kText, "Type.", &NameRow::classic_type},
       {"type_rule", ColumnType::kText, "Rule that says so; -: none.",
        &NameRow::type_rule},
       {"stage_rule", ColumnType::kText, "Rule for the stage; -: none.",
        &NameRow::stage_rule},
       {"short_name", ColumnType::kText, "Short name.", &NameRow::short_name},
       {"short_rule", ColumnType::kText, "Rule that says so; -: none.",
        &NameRow::short_rule}}};
  return columns;
}

// Rows of the classic analyzer.
struct ClassicStatsRow {
  std::string_view kernel_name;
  size_t count;
  int64_t total_time, avg_time, min_time, max_time;
};
const RowColumns<ClassicStatsRow>& ClassicStatsColumns() {
  static const RowColumns<ClassicStatsRow> columns{
      "stats",
      "Kernels by name, as the classic analyzer writes them.",
      {{"kernel_name", ColumnType::kText, "Name.",
        &ClassicStatsRow::kernel_name},
       {"count", ColumnType::kInt, "Kernels.", &ClassicStatsRow::count},
       {"total_time_us", ColumnType::kTime, "Sum.",
        &ClassicStatsRow::total_time},
       {"avg_time_us", ColumnType::kTime, "Mean.", &ClassicStatsRow::avg_time},
       {"min_time_us", ColumnType::kTime, "Shortest.",
        &ClassicStatsRow::min_time},
       {"max_time_us", ColumnType::kTime, "Longest.",
        &ClassicStatsRow::max_time}}};
  return columns;
}

struct ClassicEventRow {
  int64_t timestamp, duration;
  std::string_view stage, kernel_type, simplified_name;
  std::string grid, block;
  std::string_view kernel_name;
};
const RowColumns<ClassicEventRow>& ClassicEventColumns() {
  static const RowColumns<ClassicEventRow> columns{
      "events",
      "Every kernel, as the classic analyzer writes it.",
      {{"timestamp_us", ColumnType::kTime, "Start in the trace.",
        &ClassicEventRow::timestamp},
       {"duration_us", ColumnType::kTime, "Duration.",
        &ClassicEventRow::duration},
       {"stage", ColumnType::kText, "Stage of its layer.",
        &ClassicEventRow::stage},
       {"kernel_type", ColumnType::kText, "Type.",
        &ClassicEventRow::kernel_type},
       {"simplified_name", ColumnType::kText, "Short name.",
        &ClassicEventRow::simplified_name},
       {"grid", ColumnType::kText, "Blocks.", &ClassicEventRow::grid},
       {"block", ColumnType::kText, "Threads of a block.",
        &ClassicEventRow::block},
       {"kernel_name", ColumnType::kText, "Name.",
        &ClassicEventRow::kernel_name}}};
  return columns;
}

struct ClassicLayerRow {
  int64_t layer_idx;
  std::string_view layer_type, stage;
  int64_t total_time, attention_time, moe_time, linear_time, communication_time,
      quantization_time;
  size_t kernel_count;
};
const RowColumns<ClassicLayerRow>& ClassicLayerColumns() {
  static const RowColumns<ClassicLayerRow> columns{
      "layers",
      "Every layer, as the classic analyzer writes it.",
      {{"layer_idx", ColumnType::kInt, "From 0.", &ClassicLayerRow::layer_idx},
       {"layer_type", ColumnType::kText, "Type.", &ClassicLayerRow::layer_type},
       {"stage", ColumnType::kText, "Stage.", &ClassicLayerRow::stage},
       {"total_time_us", ColumnType::kTime, "Sum of durations.",
        &ClassicLayerRow::total_time},
       {"attention_time_us", ColumnType::kTime, "Part of it.",
        &ClassicLayerRow::attention_time},
       {"moe_time_us", ColumnType::kTime, "Part of it.",
        &ClassicLayerRow::moe_time},
       {"linear_time_us", ColumnType::kTime, "Part of it.",
        &ClassicLayerRow::linear_time},
       {"communication_time_us", ColumnType::kTime, "Part of it.",
        &ClassicLayerRow::communication_time},
       {"quantization_time_us", ColumnType::kTime, "Part of it.",
        &ClassicLayerRow::quantization_time},
       {"kernel_count", ColumnType::kInt, "Kernels.",
        &ClassicLayerRow::kernel_count}}};
  return columns;
}

std::string Dimensions(const std::array<uint32_t, 3>& d) {
  // Zero is what the profiler did not know.
  if (std::find(d.begin(), d.end(), 0u) != d.end()) return {};
  return std::to_string(d[0]) + "," + std::to_string(d[1]) + "," +
         std::to_string(d[2]);
}

// What the tables share.
class Detail {
 public:
  explicit Detail(const Details& in)
      : in_(in),
        trace_(in.context.trace),
        names_(in.context, in.rules, in.options.profile,
               in.options.grid_threshold) {
    for (const SliceId s : trace_.device_slices())
      zero_ns_ = std::min(zero_ns_, trace_.Start(s));
  }

  Table Kernels() {
    std::vector<KernelRow> rows;
    const Context& context = in_.context;
    for (const Layer* layer : FirstPass(in_.options.list)) {
      int64_t sum = 0;
      for (const SliceId s : layer->work) sum += trace_.Duration(s);
      int64_t position = 0;
      int64_t reached = trace_.Start(layer->work[0]);
      for (const SliceId s : layer->work) {
        const NodeId launcher = context.device.launcher(s);
        const NodeId launch = context.tree.launch(s);
        const tree::ModulePathId path =
            launch.valid() && !context.modules.empty()
                ? context.modules.OwnerOf(launch).path
                : tree::ModulePathId();
        const std::string module =
            path.valid() ? context.modules.PathText(path) : std::string();
        const std::string_view family =
            context.catalog.family(context.device.family(s)).name;
        const Label& label = names_.Of(s);
        const trace::LaunchConfig* config = Config(s);
        const std::string grid =
            config != nullptr ? Dimensions(config->grid) : std::string();
        const std::string block =
            config != nullptr ? Dimensions(config->block) : std::string();
        rows.push_back(
            {.pass = layer->pass,
             .stack = in_.model.stacks[layer->stack].name,
             .layer = layer->index,
             .position = position++,
             .kernel = trace_.Name(s),
             .short_name = label.short_name,
             .part = PartName(PartOf(context, s)),
             .kernel_type = family,
             .rule = names_.TypeRule(label),
             .initial_stage = StageName(names_.Kernel(s).vote),
             .stage = StageName(in_.model.StageOf(*layer)),
             .op = launcher.valid() ? context.tree.name(launcher)
                                    : std::string_view(),
             .module = module,
             .start = trace_.Start(s) - zero_ns_,
             .dur = trace_.Duration(s),
             .percent = PercentOf(trace_.Duration(s), sum),
             .gap_before = std::max<int64_t>(0, trace_.Start(s) - reached),
             .grid = grid,
             .block = block,
             .uid = trace_.Uid(s)});
        reached = std::max(reached, trace_.End(s));
      }
    }
    return KernelColumns().Make(rows);
  }

  Table Votes() {
    std::vector<VoteRow> rows;
    for (const Layer* layer : FirstPass(in_.options.debug)) {
      size_t kernels[kStages] = {};
      int64_t ns[kStages] = {};
      for (const SliceId s : layer->work) {
        const auto vote = static_cast<size_t>(names_.Kernel(s).vote);
        ++kernels[vote];
        ns[vote] += trace_.Duration(s);
      }
      for (const Stage stage :
           {Stage::kPrefill, Stage::kDecode, Stage::kUnknown}) {
        const auto i = static_cast<size_t>(stage);
        rows.push_back({.layer = layer->index,
                        .type = layer->type,
                        .stage = StageName(in_.model.StageOf(*layer)),
                        .initial_stage = StageName(stage),
                        .kernels = kernels[i],
                        .kernel_time = ns[i]});
      }
    }
    return VoteColumns().Make(rows);
  }

  Table Debug() {
    std::vector<DebugRow> rows;
    for (const Layer* layer : FirstPass(in_.options.debug)) {
      std::vector<SliceId> work = layer->work;
      std::stable_sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
        return trace_.Duration(a) > trace_.Duration(b);
      });
      work.resize(std::min(work.size(), in_.options.debug_kernels));
      for (const SliceId s : work) {
        const Label& label = names_.Of(s);
        rows.push_back({.layer = layer->index,
                        .kernel = trace_.Name(s),
                        .short_name = label.short_name,
                        .initial_stage = StageName(names_.Kernel(s).vote),
                        .stage = StageName(in_.model.StageOf(*layer)),
                        .type_rule = names_.TypeRule(label),
                        .stage_rule = names_.StageRule(label),
                        .dur = trace_.Duration(s)});
      }
    }
    return DebugColumns().Make(rows);
  }

  Table Names() {
    std::vector<NameRow> out;
    auto rows = ByName();
    rows.resize(std::min(rows.size(), kNames));
    for (const NameSum& row : rows) {
      const Label& label = names_.Of(row.first);
      out.push_back({.kernel = trace_.Name(row.first),
                     .kernels = row.durations.size(),
                     .kernel_time = row.ns,
                     .classic_type = ClassicTypeName(label.kernel.type),
                     .type_rule = names_.TypeRule(label),
                     .stage_rule = names_.StageRule(label),
                     .short_name = label.short_name,
                     .short_rule = names_.ShortRule(label)});
    }
    return NameColumns().Make(out);
  }

  std::vector<Table> Classic() {
    std::vector<Table> tables;
    tables.push_back(ClassicStats());
    tables.push_back(ClassicEvents());
    tables.push_back(ClassicLayers());
    return tables;
  }

 private:
  struct NameSum {
    SliceId first;
    int64_t ns = 0;
    std::vector<int64_t> durations;
  };

  // Names of kernels by time.
  std::vector<NameSum> ByName() const {
    std::map<uint32_t, NameSum> sums;
    for (const SliceId s : trace_.device_slices()) {
      if (trace_.KindOf(s) != trace::Kind::kKernel) continue;
      NameSum& sum = sums[trace_.slices.name[s.value].value];
      if (sum.durations.empty()) sum.first = s;
      sum.ns += trace_.Duration(s);
      sum.durations.push_back(trace_.Duration(s));
    }
    std::vector<NameSum> rows;
    for (auto& [name, sum] : sums) rows.push_back(std::move(sum));
    std::stable_sort(
        rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
          return a.ns != b.ns ? a.ns > b.ns
                              : trace_.Name(a.first) < trace_.Name(b.first);
        });
    return rows;
  }

  Table ClassicStats() const {
    std::vector<ClassicStatsRow> rows;
    for (NameSum& row : ByName()) {
      const Stats stats = Summarize(row.durations);
      rows.push_back({.kernel_name = trace_.Name(row.first),
                      .count = row.durations.size(),
                      .total_time = stats.sum,
                      .avg_time = RoundNs(stats.mean),
                      .min_time = stats.min,
                      .max_time = stats.max});
    }
    return ClassicStatsColumns().Make(rows);
  }

  Table ClassicEvents() {
    const RowColumns<ClassicEventRow>& columns = ClassicEventColumns();
    Table table(columns.schema());
    std::vector<const Layer*> layer_of(trace_.slices.size());
    for (const Layer& layer : in_.model.layers) {
      for (const SliceId s : layer.work) layer_of[s.value] = &layer;
    }
    for (const SliceId s : trace_.device_slices()) {
      if (trace_.KindOf(s) != trace::Kind::kKernel) continue;
      const Label& label = names_.Of(s);
      const trace::LaunchConfig* config = Config(s);
      const std::string grid =
          config != nullptr ? Dimensions(config->grid) : std::string();
      const std::string block =
          config != nullptr ? Dimensions(config->block) : std::string();
      const Layer* layer = layer_of[s.value];
      columns.Add(table, {.timestamp = trace_.Start(s),
                          .duration = trace_.Duration(s),
                          .stage = FinalStage(s, layer),
                          .kernel_type = ClassicTypeName(label.kernel.type),
                          .simplified_name = label.short_name,
                          .grid = grid,
                          .block = block,
                          .kernel_name = trace_.Name(s)});
    }
    return table;
  }

  // A layer that knows its stage decides for its kernels.
  std::string_view FinalStage(SliceId s, const Layer* layer) {
    if (layer != nullptr) {
      const Stage stage = in_.model.StageOf(*layer);
      if (stage == Stage::kPrefill || stage == Stage::kDecode)
        return StageName(stage);
    }
    return StageName(names_.Kernel(s).vote);
  }

  Table ClassicLayers() {
    std::vector<ClassicLayerRow> rows;
    int64_t index = 0;
    for (const Layer& layer : in_.model.layers) {
      int64_t total = 0;
      int64_t types[7] = {};
      for (const SliceId s : layer.work) {
        total += trace_.Duration(s);
        types[static_cast<size_t>(names_.Of(s).kernel.type)] +=
            trace_.Duration(s);
      }
      const auto time = [&](ClassicType type) {
        return types[static_cast<size_t>(type)];
      };
      rows.push_back({.layer_idx = index++,
                      .layer_type = layer.type,
                      .stage = StageName(in_.model.StageOf(layer)),
                      .total_time = total,
                      .attention_time = time(ClassicType::kAttention),
                      .moe_time = time(ClassicType::kMoe),
                      .linear_time = time(ClassicType::kLinear),
                      .communication_time = time(ClassicType::kCommunication),
                      .quantization_time = time(ClassicType::kQuantization),
                      .kernel_count = layer.work.size()});
    }
    return ClassicLayerColumns().Make(rows);
  }

  std::vector<const Layer*> FirstPass(const std::vector<uint32_t>& list) const {
    std::vector<const Layer*> out;
    for (const Layer& layer : in_.model.layers) {
      if (layer.pass == 0 &&
          std::find(list.begin(), list.end(), layer.index) != list.end())
        out.push_back(&layer);
    }
    return out;
  }

  const trace::LaunchConfig* Config(SliceId s) const {
    const trace::DeviceArgs* args = trace_.Device(s);
    return args != nullptr ? trace_.Config(args->config) : nullptr;
  }

  const Details& in_;
  const Trace& trace_;
  Labels names_;
  int64_t zero_ns_ = INT64_MAX;
};

}  // namespace

std::vector<Schema> DetailSchemas() {
  return {KernelColumns().schema(), VoteColumns().schema(),
          DebugColumns().schema(), NameColumns().schema()};
}

Table LayerKernels(const Details& in) { return Detail(in).Kernels(); }
Table LayerVotes(const Details& in) { return Detail(in).Votes(); }
Table LayerDebug(const Details& in) { return Detail(in).Debug(); }
Table NameRuleTable(const Details& in) { return Detail(in).Names(); }
std::vector<Table> ClassicTables(const Details& in) {
  return Detail(in).Classic();
}

}  // namespace lamina::analysis::layers
