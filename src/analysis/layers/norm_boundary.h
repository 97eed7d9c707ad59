// SPDX-License-Identifier: Apache-2.0
//
// Where a layer begins: a repeat is known up to rotation only, and a norm says
// which of its elements is the first.
#pragma once

#include <cstdint>
#include <span>

#include "analysis/layers/repeats.h"

namespace lamina::analysis::layers {

// Offset in the layer [begin, end) of the norm that begins one: a product
// follows it, then attention, and no norm of the layer is nearer to attention.
// The first norm when the layer has no attention; the length of the layer when
// no norm.
uint32_t NormOffset(Marks marks, uint32_t begin, uint32_t end);

}  // namespace lamina::analysis::layers
