// SPDX-License-Identifier: Apache-2.0
//
// Inside of analysis/layers: from layers to forward passes.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/layers/lanes.h"

namespace lamina::analysis::layers {

// Fills passes and no_pass of the model and numbers its layers and variants.
// `layer_of` gives the layer of every slice, UINT32_MAX for none; the layers
// are in order of their first start.
void MakePasses(const Context& context, const std::vector<uint32_t>& layer_of,
                LayerModel& model);

// Where no layers are found: the steps as passes, if their ranges say a stage
// (prefill, decode). All their work is outside of layers.
void MakeStepPasses(const Context& context, LayerModel& model);

// First work of a pass and that of its last layer.
SliceId FirstOf(const LayerModel& model, const Pass& pass);
SliceId LastOf(const LayerModel& model, const Pass& pass);

}  // namespace lamina::analysis::layers
