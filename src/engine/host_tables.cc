// SPDX-License-Identifier: Apache-2.0
#include "engine/host_tables.h"

#include <algorithm>
#include <fmt/core.h>
#include <optional>
#include <utility>

#include "analysis/path/tables.h"
#include "engine/fusion_names.h"
#include "engine/passed_bytes.h"

namespace lamina::engine {

namespace host = analysis::host;
namespace path = analysis::path;

namespace {

bool Has(const host::HostModel& model, host::WorkKind kind) {
  const auto slices = model.trace().device_slices();
  return std::any_of(slices.begin(), slices.end(),
                     [&](trace::SliceId s) { return model.kind(s) == kind; });
}

}  // namespace

Result<const std::vector<int64_t>*> PathTimes::Of(
    const std::function<Result<const path::Graph*>()>& path_of) {
  const std::lock_guard lock(mutex_);
  if (!times_ns_) {
    LAMINA_ASSIGN(const path::Graph* const graph, path_of());
    if (graph->sink() == path::kNoNode) {
      times_ns_.emplace();
    } else {
      LAMINA_ASSIGN(const path::Window whole, path::FindWindow(*graph, ""));
      times_ns_ = path::TimesOfWork(*graph, whole.sink, whole.start_ns);
    }
  }
  return &*times_ns_;
}

host::WorkLayers LayersOfWork(const trace::Trace& trace,
                              const analysis::layers::LayerModel& model) {
  host::WorkLayers out;
  for (const analysis::layers::Layer& layer : model.layers) {
    out.Add(trace,
            fmt::format("{} {}", model.stacks[layer.stack].name, layer.index),
            layer.work);
  }
  return out;
}

Result<ResultSet> LaunchTables(const host::HostModel& model,
                               const host::TableOptions& options,
                               const HostSources& sources, bool named) {
  host::WorkFacts facts;
  if (named && !model.calls().empty()) {
    LAMINA_ASSIGN(const auto* const layers, sources.layers());
    facts.layers = LayersOfWork(model.trace(), *layers);
  }
  return host::LaunchTables(model, options, facts);
}

Result<ResultSet> StepTables(const host::HostModel& model,
                             const host::Idle& idle,
                             const HostSources& sources) {
  std::optional<Error> error;
  const size_t steps = model.context().steps.steps().size();
  ResultSet result = host::StepTables(model, idle, [&](size_t warm) {
    host::Growth growth(warm, steps);
    const auto graph = sources.path();
    if (!graph) {
      error = graph.error();
      return growth;
    }
    if ((*graph)->sink() == path::kNoNode) return growth;
    for (const path::StepPath& step : path::StepPaths(**graph)) {
      for (size_t c = 0; c < path::kPathClasses; ++c) {
        const auto of = static_cast<path::PathClass>(c);
        if (of != path::PathClass::kBeforeTrace)
          growth.Add(path::PathClassName(of), step.step, step.sums.of(of));
      }
    }
    return growth;
  });
  if (error) return Fail(std::move(*error));
  return result;
}

Result<Table> SequencesTable(const Session& session,
                             const host::HostModel& model,
                             const host::Idle& idle,
                             const HostSources& sources) {
  const auto sequences = host::FindSequences(model, idle);
  FusionNames rules;
  host::SequenceFacts facts;
  if (!sequences.empty()) {
    LAMINA_ASSIGN(rules, FusionNames::Load(session.data()));
    facts.rule = [&](std::span<const tree::NodeId> launchers) {
      return rules.Find(model.context().tree, launchers);
    };
    facts.passed = [&](std::span<const tree::NodeId> launchers) {
      return PassedBytes(model.context().tree, launchers);
    };
    LAMINA_ASSIGN(const analysis::layers::LayerModel* const found,
                  sources.layers());
    for (const analysis::layers::Layer& layer : found->layers)
      facts.layers.emplace_back(layer.work);
    LAMINA_ASSIGN(const auto* const times,
                  sources.path_times->Of(sources.path));
    facts.path_ns = *times;
  }
  return host::SequenceTable(model, sequences, facts);
}

Result<ResultSet> TransferTables(const host::HostModel& model,
                                 const host::LinkPeaks& peaks,
                                 const HostSources& sources, bool events,
                                 host::RankTimesOf ranks) {
  host::WorkFacts facts;
  facts.ranks = std::move(ranks);
  const bool comm = Has(model, host::WorkKind::kComm);
  if (comm || Has(model, host::WorkKind::kCopy)) {
    LAMINA_ASSIGN(const auto* const times,
                  sources.path_times->Of(sources.path));
    facts.path_ns = *times;
  }
  if (comm) {
    LAMINA_ASSIGN(const auto* const layers, sources.layers());
    facts.layers = LayersOfWork(model.trace(), *layers);
  }
  return host::TransferTables(model, peaks, facts, events);
}

}  // namespace lamina::engine
