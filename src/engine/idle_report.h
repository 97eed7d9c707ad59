// SPDX-License-Identifier: Apache-2.0
//
// The causes of idle time in a report.
#pragma once

#include <optional>

#include "analysis/host/idle.h"
#include "analysis/path/graph.h"
#include "engine/session.h"
#include "lamina/result.h"

namespace lamina::engine {

// Host and device of a trace together, and why the devices were idle.
struct IdleView {
  analysis::host::HostModel model;
  analysis::host::Idle idle;
  std::optional<analysis::path::Graph> path;  // by Session::PathOf
};

// Adds the table idle_causes, to the sentences about idle time what caused it,
// and to the table gaps what each is made of. Errors: data files that cannot be
// used.
Status AddIdleCauses(Session& session, const analysis::Context& context,
                     ResultSet& result);

// Fills in what bounds each step in the table steps, where there is one.
// Errors as above.
Status AddStepVerdicts(Session& session, const analysis::Context& context,
                       ResultSet& result);

// The same for the table layers.
Status AddLayerVerdicts(Session& session, const analysis::Context& context,
                        ResultSet& result);

// The parts of gaps alone. Errors as above.
Status AddGapParts(Session& session, const analysis::Context& context,
                   ResultSet& result);

// The table idle_gaps of the longest `most` gaps. Errors as above.
Result<Table> LongestIdleGaps(Session& session,
                              const analysis::Context& context, size_t most);

}  // namespace lamina::engine
