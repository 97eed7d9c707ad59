// SPDX-License-Identifier: Apache-2.0
//
// Inside of analysis/layers: the layers in their order, with what is no kernel
// of theirs but runs in them.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/layers/lanes.h"

namespace lamina::analysis::layers {

// Puts the layers of the model, and the work of each, in order of their start.
// `layer_of` gives the layer of every slice, UINT32_MAX for none.
void SortLayers(const Trace& trace, std::vector<uint32_t>& layer_of,
                LayerModel& model);

// Copies, fills and kernels of other streams join the layer during which they
// start: while a stream runs its kernels and no others.
void AttachOthers(const Trace& trace, const std::vector<Lane>& lanes,
                  std::vector<uint32_t>& layer_of, LayerModel& model);

}  // namespace lamina::analysis::layers
