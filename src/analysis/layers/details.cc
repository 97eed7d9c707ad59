// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/details.h"

#include <algorithm>
#include <map>

#include "analysis/common/stats.h"
#include "analysis/layers/labels.h"
#include "analysis/layers/lanes.h"

namespace lamina::analysis::layers {
namespace {

constexpr size_t kNames = 25;

Schema KernelSchema() {
  return {
      "layer_kernels",
      "Kernels of the layers that --layer names, of the first pass.",
      {{"pass", ColumnType::kInt, "Pass.", Shown::kHidden},
       {"stack", ColumnType::kText, "Stack.", Shown::kHidden},
       {"layer", ColumnType::kInt, "Layer."},
       {"position", ColumnType::kInt, "From 0."},
       {"kernel", ColumnType::kText, "Name."},
       {"short_name", ColumnType::kText, "By the rules.", Shown::kHidden},
       {"part", ColumnType::kText, "What it does for the layer."},
       {"kernel_type", ColumnType::kText, "Family.", Shown::kHidden},
       {"rule", ColumnType::kText, "Rule that says the type.", Shown::kHidden},
       {"initial_stage", ColumnType::kText, "By its name alone.",
        Shown::kHidden},
       {"stage", ColumnType::kText, "Of its layer.", Shown::kHidden},
       {"op", ColumnType::kText, "Op that launched it."},
       {"module", ColumnType::kText, "Module that launched it.",
        Shown::kHidden},
       {"start_us", ColumnType::kTime, "Since the first device event.",
        Shown::kHidden},
       {"dur_us", ColumnType::kTime, "Duration."},
       {"percent", ColumnType::kReal, "Share of the layer.", Shown::kBar},
       {"gap_before_us", ColumnType::kTime,
        "Idle time before it inside the layer.", Shown::kHidden},
       {"grid", ColumnType::kText, "Blocks.", Shown::kHidden},
       {"block", ColumnType::kText, "Threads of a block.", Shown::kHidden},
       {"uid", ColumnType::kInt, "Event number.", Shown::kHidden}}};
}

Schema VoteSchema() {
  return {"layer_votes",
          "What the kernels of the layers that --debug-layers names say of "
          "the stage.",
          {{"layer", ColumnType::kInt, "Layer."},
           {"type", ColumnType::kText, "Type of the layer."},
           {"stage", ColumnType::kText, "Stage of the layer."},
           {"initial_stage", ColumnType::kText, "What kernels say."},
           {"kernels", ColumnType::kInt, "How many."},
           {"kernel_time_us", ColumnType::kTime, "Sum of durations."}}};
}

Schema DebugSchema() {
  return {"layer_debug",
          "The longest kernels of these layers, with the rules that decided.",
          {{"layer", ColumnType::kInt, "Layer."},
           {"kernel", ColumnType::kText, "Name."},
           {"short_name", ColumnType::kText, "By the rules."},
           {"initial_stage", ColumnType::kText, "What the kernel says."},
           {"stage", ColumnType::kText, "What the layer says."},
           {"type_rule", ColumnType::kText, "Rule for its type; -: none."},
           {"stage_rule", ColumnType::kText, "Rule for its stage; -: none."},
           {"dur_us", ColumnType::kTime, "Duration."}}};
}

Schema NameSchema() {
  return {"name_rules",
          "The rules behind the names that take the most time.",
          {{"kernel", ColumnType::kText, "Name."},
           {"kernels", ColumnType::kInt, "Device events."},
           {"kernel_time_us", ColumnType::kTime, "Sum of durations."},
           {"classic_type", ColumnType::kText, "Type."},
           {"type_rule", ColumnType::kText, "Rule that says so; -: none."},
           {"stage_rule", ColumnType::kText, "Rule for the stage; -: none."},
           {"short_name", ColumnType::kText, "Short name."},
           {"short_rule", ColumnType::kText, "Rule that says so; -: none."}}};
}

std::string Dimensions(const std::array<uint32_t, 3>& d) {
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
    Table table(KernelSchema());
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
        table.Add(
            layer->pass, in_.model.stacks[layer->stack].name, layer->index,
            position++, trace_.Name(s), label.short_name,
            PartName(PartOf(context, s)), family, names_.TypeRule(label),
            StageName(names_.Kernel(s).vote),
            StageName(in_.model.StageOf(*layer)),
            launcher.valid() ? context.tree.name(launcher) : std::string_view(),
            module, trace_.Start(s) - zero_ns_, trace_.Duration(s),
            PercentOf(trace_.Duration(s), sum),
            std::max<int64_t>(0, trace_.Start(s) - reached), grid, block,
            trace_.Uid(s));
        reached = std::max(reached, trace_.End(s));
      }
    }
    return table;
  }

  Table Votes() {
    Table table(VoteSchema());
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
        table.Add(layer->index, layer->type,
                  StageName(in_.model.StageOf(*layer)), StageName(stage),
                  kernels[i], ns[i]);
      }
    }
    return table;
  }

  Table Debug() {
    Table table(DebugSchema());
    for (const Layer* layer : FirstPass(in_.options.debug)) {
      std::vector<SliceId> work = layer->work;
      std::stable_sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
        return trace_.Duration(a) > trace_.Duration(b);
      });
      work.resize(std::min(work.size(), in_.options.debug_kernels));
      for (const SliceId s : work) {
        const Label& label = names_.Of(s);
        table.Add(layer->index, trace_.Name(s), label.short_name,
                  StageName(names_.Kernel(s).vote),
                  StageName(in_.model.StageOf(*layer)), names_.TypeRule(label),
                  names_.StageRule(label), trace_.Duration(s));
      }
    }
    return table;
  }

  Table Names() {
    Table table(NameSchema());
    auto rows = ByName();
    rows.resize(std::min(rows.size(), kNames));
    for (const NameSum& row : rows) {
      const Label& label = names_.Of(row.first);
      table.Add(trace_.Name(row.first), row.durations.size(), row.ns,
                ClassicTypeName(label.kernel.type), names_.TypeRule(label),
                names_.StageRule(label), label.short_name,
                names_.ShortRule(label));
    }
    return table;
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
    Table table({"stats",
                 "Kernels by name, as the classic analyzer writes them.",
                 {{"kernel_name", ColumnType::kText, "Name."},
                  {"count", ColumnType::kInt, "Kernels."},
                  {"total_time_us", ColumnType::kTime, "Sum."},
                  {"avg_time_us", ColumnType::kTime, "Mean."},
                  {"min_time_us", ColumnType::kTime, "Shortest."},
                  {"max_time_us", ColumnType::kTime, "Longest."}}});
    for (NameSum& row : ByName()) {
      const Stats stats = Summarize(row.durations);
      table.Add(trace_.Name(row.first), row.durations.size(), stats.sum,
                RoundNs(stats.mean), stats.min, stats.max);
    }
    return table;
  }

  Table ClassicEvents() {
    Table table({"events",
                 "Every kernel, as the classic analyzer writes it.",
                 {{"timestamp_us", ColumnType::kTime, "Start in the trace."},
                  {"duration_us", ColumnType::kTime, "Duration."},
                  {"stage", ColumnType::kText, "Stage of its layer."},
                  {"kernel_type", ColumnType::kText, "Type."},
                  {"simplified_name", ColumnType::kText, "Short name."},
                  {"grid", ColumnType::kText, "Blocks."},
                  {"block", ColumnType::kText, "Threads of a block."},
                  {"kernel_name", ColumnType::kText, "Name."}}});
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
      table.Add(trace_.Start(s), trace_.Duration(s), FinalStage(s, layer),
                ClassicTypeName(label.kernel.type), label.short_name, grid,
                block, trace_.Name(s));
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
    Table table({"layers",
                 "Every layer, as the classic analyzer writes it.",
                 {{"layer_idx", ColumnType::kInt, "From 0."},
                  {"layer_type", ColumnType::kText, "Type."},
                  {"stage", ColumnType::kText, "Stage."},
                  {"total_time_us", ColumnType::kTime, "Sum of durations."},
                  {"attention_time_us", ColumnType::kTime, "Part of it."},
                  {"moe_time_us", ColumnType::kTime, "Part of it."},
                  {"linear_time_us", ColumnType::kTime, "Part of it."},
                  {"communication_time_us", ColumnType::kTime, "Part of it."},
                  {"quantization_time_us", ColumnType::kTime, "Part of it."},
                  {"kernel_count", ColumnType::kInt, "Kernels."}}});
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
      table.Add(index++, layer.type, StageName(in_.model.StageOf(layer)), total,
                time(ClassicType::kAttention), time(ClassicType::kMoe),
                time(ClassicType::kLinear), time(ClassicType::kCommunication),
                time(ClassicType::kQuantization), layer.work.size());
    }
    return table;
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
  return {KernelSchema(), VoteSchema(), DebugSchema(), NameSchema()};
}

Table LayerKernels(const Details& in) { return Detail(in).Kernels(); }
Table LayerVotes(const Details& in) { return Detail(in).Votes(); }
Table LayerDebug(const Details& in) { return Detail(in).Debug(); }
Table NameRuleTable(const Details& in) { return Detail(in).Names(); }
std::vector<Table> ClassicTables(const Details& in) {
  return Detail(in).Classic();
}

}  // namespace lamina::analysis::layers
