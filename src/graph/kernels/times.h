// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/kernels/graph_kernels.h"

namespace lamina::graph_kernels {

// Fills the times of kernels, nodes and layers, over the full replays, and says
// which replays are no measure.
void AddTimes(const trace::Trace& trace, KernelMap& map);

}  // namespace lamina::graph_kernels
