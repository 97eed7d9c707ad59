// SPDX-License-Identifier: Apache-2.0
#include "analysis/host_tables/tables.h"

#include <algorithm>
#include <fmt/core.h>
#include <optional>
#include <utility>

#include "analysis/common/cost_view.h"
#include "analysis/host/counters.h"
#include "analysis/host/sequences.h"
#include "analysis/host_tables/fusion_names.h"
#include "analysis/host_tables/passed_bytes.h"
#include "analysis/path/tables.h"
#include "cost/links.h"

namespace lamina::analysis::host_tables {

namespace {

bool Has(const host::HostModel& model, host::WorkKind kind) {
  const auto slices = model.trace().device_slices();
  return std::any_of(slices.begin(), slices.end(),
                     [&](trace::SliceId s) { return model.kind(s) == kind; });
}

// What the links of the device of a trace carry at most.
struct TracePeaks {
  static constexpr std::string_view kFact = "link peaks";
  static Result<TracePeaks> Of(const Input& input) {
    TracePeaks out;
    LAMINA_ASSIGN(const TargetDevice* const target, input.Get<TargetDevice>());
    if (!target->device) return out;
    LAMINA_ASSIGN(const cost::Links links,
                  cost::LinksOf(input.data, target->device->name));
    out.peaks = {links.pcie_bytes_per_s, links.fabric_bytes_per_s,
                 target->device->bytes_per_s};
    return out;
  }

  host::LinkPeaks peaks;
};

// Time on the critical path by step and class, of steps behind the warm-up.
host::Growth PathGrowth(const path::Graph& graph, size_t warm, size_t steps) {
  host::Growth growth(warm, steps);
  if (graph.sink() == path::kNoNode) return growth;
  for (const path::StepPath& step : path::StepPaths(graph)) {
    for (size_t c = 0; c < path::kPathClasses; ++c) {
      const auto of = static_cast<path::PathClass>(c);
      if (of != path::PathClass::kBeforeTrace)
        growth.Add(path::PathClassName(of), step.step, step.sums.of(of));
    }
  }
  return growth;
}

}  // namespace

host::WorkLayers LayersOfWork(const trace::Trace& trace,
                              const layers::LayerModel& model) {
  host::WorkLayers out;
  for (const layers::Layer& layer : model.layers) {
    out.Add(trace,
            fmt::format("{} {}", model.stacks[layer.stack].name, layer.index),
            layer.work);
  }
  return out;
}

Result<ResultSet> LaunchTables(const Context& context,
                               const host::TableOptions& options, bool named) {
  LAMINA_ASSIGN(const auto* const model, context.Get<host::HostModel>());
  host::WorkFacts facts;
  if (named && !model->calls().empty()) {
    LAMINA_ASSIGN(const auto* const layers, context.Get<layers::LayerModel>());
    facts.layers = LayersOfWork(context.trace, *layers);
  }
  return host::LaunchTables(*model, options, facts);
}

Result<ResultSet> RangeTables(const Context& context) {
  LAMINA_ASSIGN(const auto* const model, context.Get<host::HostModel>());
  LAMINA_ASSIGN(const auto* const idle, context.Get<host::Idle>());
  ResultSet result = host::RangeTables(*model);
  std::optional<Error> error;
  result.Append(host::StepTables(*model, *idle, [&](size_t warm) {
    const size_t steps = context.steps.steps().size();
    const auto graph = context.Get<path::Graph>();
    if (graph) return PathGrowth(**graph, warm, steps);
    error = graph.error();
    return host::Growth(warm, steps);
  }));
  if (error) return Fail(*std::move(error));
  return result;
}

Result<ResultSet> SequenceTables(const Context& context) {
  LAMINA_ASSIGN(const auto* const model, context.Get<host::HostModel>());
  LAMINA_ASSIGN(const auto* const idle, context.Get<host::Idle>());
  const auto sequences = host::FindSequences(*model, *idle);
  host::SequenceFacts facts;
  if (!sequences.empty()) {
    LAMINA_ASSIGN(const auto* const rules, context.Get<FusionNames>());
    facts.rule = [&context, rules](std::span<const tree::NodeId> launchers) {
      return rules->Find(context.tree, launchers);
    };
    facts.passed = [&context](std::span<const tree::NodeId> launchers) {
      return PassedBytes(context.tree, launchers);
    };
    LAMINA_ASSIGN(const auto* const found, context.Get<layers::LayerModel>());
    for (const layers::Layer& layer : found->layers)
      facts.layers.emplace_back(layer.work);
    LAMINA_ASSIGN(const auto* const on_path, context.Get<path::WorkOnPath>());
    facts.path_ns = on_path->times_ns;
  }
  ResultSet result;
  result.tables.push_back(host::SequenceTable(*model, sequences, facts));
  return result;
}

Result<ResultSet> TransferTables(const Context& context, bool events,
                                 host::RankTimesOf ranks) {
  LAMINA_ASSIGN(const auto* const model, context.Get<host::HostModel>());
  LAMINA_ASSIGN(const auto* const links, context.Get<TracePeaks>());
  host::WorkFacts facts;
  facts.ranks = std::move(ranks);
  const bool comm = Has(*model, host::WorkKind::kComm);
  if (comm || Has(*model, host::WorkKind::kCopy)) {
    LAMINA_ASSIGN(const auto* const on_path, context.Get<path::WorkOnPath>());
    facts.path_ns = on_path->times_ns;
  }
  if (comm) {
    LAMINA_ASSIGN(const auto* const layers, context.Get<layers::LayerModel>());
    facts.layers = LayersOfWork(context.trace, *layers);
  }
  return host::TransferTables(*model, links->peaks, facts, events);
}

Result<ResultSet> CounterTables(const Context& context, bool events) {
  LAMINA_ASSIGN(const auto* const model, context.Get<host::HostModel>());
  LAMINA_ASSIGN(const auto metrics, host::LoadMetrics(context.input.data));
  return host::CounterTables(*model, *metrics, events);
}

namespace {

Result<ResultSet> PathResult(const Context& context) {
  LAMINA_ASSIGN(const auto* const graph, context.Get<path::Graph>());
  if (graph->sink() == path::kNoNode) return ResultSet();
  LAMINA_ASSIGN(const path::Window window, path::FindWindow(*graph, ""));
  LAMINA_ASSIGN(const auto* const found, context.Get<layers::LayerModel>());
  const host::WorkLayers layers = LayersOfWork(context.trace, *found);
  path::PathSums sums;
  path::TableOptions options;
  options.layers = &layers;
  options.evidence = [&](std::span<const Interval> windows) {
    return host::IdleEvidence::Of(graph->model(), windows);
  };
  return path::PathTables(*graph, window, sums, options);
}

Result<ResultSet> IdleResult(const Context& context) {
  LAMINA_ASSIGN(const auto* const model, context.Get<host::HostModel>());
  LAMINA_ASSIGN(const auto* const idle, context.Get<host::Idle>());
  host::TableOptions options;
  options.events = false;
  return host::IdleTables(*model, *idle, options);
}

// idle_causes, with what makes it doubtful, as a report shows it.
Result<ResultSet> CausesResult(const Context& context) {
  if (context.trace.device_slices().empty()) return ResultSet();
  LAMINA_ASSIGN(ResultSet result, IdleResult(context));
  std::erase_if(result.tables, [](const Table& table) {
    return table.name() != "idle_causes";
  });
  std::erase_if(result.notes, [](const Note& note) {
    return note.id != "device_records_missing";
  });
  return result;
}

Result<ResultSet> PartsResult(const Context& context) {
  LAMINA_ASSIGN(const auto* const model, context.Get<host::HostModel>());
  LAMINA_ASSIGN(const auto* const idle, context.Get<host::Idle>());
  ResultSet result;
  result.tables.push_back(host::IdlePartsTable(*model, *idle));
  return result;
}

}  // namespace

// In the order in which `lamina list tables` shows their tables. A table of two
// analyses is that of the first.
std::vector<AnalysisInfo> Infos() {
  return {
      {"idle_parts", "Every part of every gap of a device.",
       &host::IdlePartsSchemas, &PartsResult},
      {"idle", "Why the devices were idle.", &host::IdleSchemas, &IdleResult},
      {"idle_causes", "Idle time by cause, without its gaps.",
       [] {
         auto schemas = host::IdleSchemas();
         std::erase_if(schemas, [](const Schema& schema) {
           return schema.name != "idle_causes";
         });
         return schemas;
       },
       &CausesResult},
      {"launch_layers", "Launches one by one, with the layers of their work.",
       &host::LaunchLayerSchemas,
       [](const Context& context) { return LaunchTables(context, {}, true); }},
      {"launches", "How launches and their queues kept up.",
       &host::LaunchSchemas,
       [](const Context& context) { return LaunchTables(context, {}, false); }},
      {"transfers", "Communication and copies beside other work.",
       &host::TransferSchemas,
       [](const Context& context) { return TransferTables(context, true); }},
      {"sequences", "Kernels that follow each other again and again.",
       &host::SequenceSchemas, &SequenceTables},
      {"counters", "What counters of the trace say of kernels and time.",
       &host::CounterSchemas,
       [](const Context& context) { return CounterTables(context, true); }},
      {"ranges", "Time of ranges and steps of the host.", &host::RangeSchemas,
       &RangeTables},
      {"path", "The critical path of the whole trace.", &path::Schemas,
       &PathResult},
  };
}

}  // namespace lamina::analysis::host_tables
