// SPDX-License-Identifier: Apache-2.0
//
// Tables of `lamina host` and `lamina path` that show what several facts of a
// context say together: host and device, the critical path, layers, fusion
// rules, peaks of links. Errors of all: data files that cannot be used.
#pragma once

#include <vector>

#include "analysis/host/tables.h"
#include "analysis/layers/layers.h"

namespace lamina::analysis::host_tables {

// The layers by name, "LlamaDecoderLayer 3".
host::WorkLayers LayersOfWork(const trace::Trace& trace,
                              const layers::LayerModel& model);

// `named`: with the layers of launch_runs and launch_events, which take as long
// to find as all else here.
Result<ResultSet> LaunchTables(const Context& context,
                               const host::TableOptions& options, bool named);
// annotation_time, op_launch_delay, step_drift and slow_steps.
Result<ResultSet> RangeTables(const Context& context);
// kernel_sequences.
Result<ResultSet> SequenceTables(const Context& context);
// comm_exposure and copies; with `events` comm_events. `ranks`: what other
// ranks say of collectives.
Result<ResultSet> TransferTables(const Context& context, bool events,
                                 host::RankTimesOf ranks = {});
Result<ResultSet> CounterTables(const Context& context, bool events);

std::vector<AnalysisInfo> Infos();

}  // namespace lamina::analysis::host_tables
