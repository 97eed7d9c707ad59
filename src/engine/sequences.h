// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "analysis/host/sequences.h"
#include "analysis/layers/layers.h"
#include "engine/session.h"

namespace lamina::engine {

// The table kernel_sequences. `layers` gives those of the trace; it is asked
// only when there is a sequence. Errors: data files that cannot be used.
Result<Table> SequencesTable(
    const Session& session, const analysis::host::HostModel& model,
    const analysis::host::Idle& idle,
    const std::function<Result<const analysis::layers::LayerModel*>()>& layers);

}  // namespace lamina::engine
