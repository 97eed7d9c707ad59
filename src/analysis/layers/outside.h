// SPDX-License-Identifier: Apache-2.0
//
// Device work in no layer (embedding, head, preprocessing) and the pass that
// it belongs to.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/layers/layers.h"

namespace lamina::analysis::layers {

// Gives every slice of a device that has no layer to one of its passes, which
// are those of the model from `first_pass` on, by start; without a pass, to
// no_pass. `layer_of` gives the layer of every slice, UINT32_MAX for none.
void PlaceOutside(const Context& context, const std::vector<uint32_t>& layer_of,
                  int64_t device, size_t first_pass, LayerModel& model);

}  // namespace lamina::analysis::layers
