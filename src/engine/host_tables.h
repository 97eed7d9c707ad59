// SPDX-License-Identifier: Apache-2.0
//
// Tables of `lamina host` that show what other analyses know of device work:
// the chain of last arrivals, layers, fusion rules, peaks of links.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "analysis/host/sequences.h"
#include "analysis/host/tables.h"
#include "analysis/layers/layers.h"
#include "analysis/path/graph.h"
#include "engine/session.h"

namespace lamina::engine {

// Times of work on the chain, computed once for all tables that show them; from
// any thread.
class PathTimes {
 public:
  Result<const std::vector<int64_t>*> Of(
      const std::function<Result<const analysis::path::Graph*>()>& path_of);

 private:
  std::mutex mutex_;
  std::optional<std::vector<int64_t>> times_ns_;
};

// Where they come from; asked only by tables with rows that show them.
struct HostSources {
  std::function<Result<const analysis::layers::LayerModel*>()> layers;
  std::function<Result<const analysis::path::Graph*>()> path;
  std::shared_ptr<PathTimes> path_times = std::make_shared<PathTimes>();
};

// The layers by name, "LlamaDecoderLayer 3".
analysis::host::WorkLayers LayersOfWork(
    const trace::Trace& trace, const analysis::layers::LayerModel& model);

// Errors of all of them: data files that cannot be used.
// `named`: with the layers of launch_runs and launch_events.
Result<ResultSet> LaunchTables(const analysis::host::HostModel& model,
                               const analysis::host::TableOptions& options,
                               const HostSources& sources, bool named);
// step_drift and slow_steps.
Result<ResultSet> StepTables(const analysis::host::HostModel& model,
                             const analysis::host::Idle& idle,
                             const HostSources& sources);
// The table kernel_sequences.
Result<Table> SequencesTable(const Session& session,
                             const analysis::host::HostModel& model,
                             const analysis::host::Idle& idle,
                             const HostSources& sources);
// comm_exposure and copies; with `events` comm_events. `ranks`: what other
// ranks say of collectives.
Result<ResultSet> TransferTables(const analysis::host::HostModel& model,
                                 const analysis::host::LinkPeaks& peaks,
                                 const HostSources& sources, bool events,
                                 analysis::host::RankTimesOf ranks = {});

}  // namespace lamina::engine
