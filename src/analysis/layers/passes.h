// SPDX-License-Identifier: Apache-2.0
//
// Inside of analysis/layers: from layers to forward passes.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/layers/layers.h"

namespace lamina::analysis::layers {

// Kernels of one stream by start; of the classic detector, of one device.
struct Lane {
  int64_t device = 0;
  std::vector<SliceId> kernels;
};

void SortByStart(const Trace& trace, std::vector<SliceId>& work);
int64_t DeviceOf(const Trace& trace, SliceId s);

// Fills passes and no_pass of the model and numbers its layers and variants.
// `layer_of` gives the layer of every slice, UINT32_MAX for none; the layers
// are in order of their first start.
void MakePasses(const Context& context, const std::vector<Lane>& lanes,
                const std::vector<uint32_t>& layer_of, LayerModel& model);

}  // namespace lamina::analysis::layers
