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

}  // namespace lamina::analysis::layers
