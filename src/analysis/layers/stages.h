// SPDX-License-Identifier: Apache-2.0
//
// The stage of a forward pass (prefill, decode, mixed): by what the engine
// writes beside it, by Python frames, else by its attention kernels.
#pragma once

#include "analysis/layers/labels.h"

namespace lamina::analysis::layers {

// Fills stage, evidence, batch and tokens of the passes of a model. `labels`
// are those of our own tables.
void FindStages(const Context& context, Labels& labels, LayerModel& model);

}  // namespace lamina::analysis::layers
