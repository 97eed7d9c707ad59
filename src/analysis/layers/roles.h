// SPDX-License-Identifier: Apache-2.0
//
// Layers by what their kernels do: where the names of norms, mixers (attention,
// state-space scans) and feed-forward parts are known, a layer is the shortest
// range that begins at a norm and holds one mixer and, where the model has
// them, one feed-forward part.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/layers/repeats.h"

namespace lamina::analysis::layers {

struct RoleLayer {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool complete = false;  // a norm before its mixer, products on both sides
};

// The layers of a part of a sequence, by begin. Two attentions before every
// feed-forward part (self and cross) are one layer; several scans are several.
std::vector<RoleLayer> CutByRoles(std::span<const uint32_t> ids, Marks marks);

}  // namespace lamina::analysis::layers
