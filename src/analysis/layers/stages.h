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

// Reads stage, batch and tokens from the text of the step's range; false when
// it says none.
bool ReadStage(Pass& pass);

}  // namespace lamina::analysis::layers
