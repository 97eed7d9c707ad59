// SPDX-License-Identifier: Apache-2.0
//
// Where a layer begins: a repeat is known up to rotation only, and a norm says
// which of its elements is the first.
#pragma once

#include <cstdint>
#include <span>

#include "analysis/layers/repeats.h"

namespace lamina::analysis::layers {

using Marks = std::span<const uint8_t>;

// Offset in a layer of the norm that begins one: a product follows it, then
// attention, and no norm of the layer is nearer to attention. The first norm
// when the layer has no attention; the length of the layer when no norm.
uint32_t NormOffset(Marks marks, const Piece& layer);

// Moves the boundaries of exact layers to the norm that begins one. What is
// left at the ends of the region, which ends at `end`, stays free.
void MoveToNorms(Marks marks, uint32_t end, Stack& stack);

}  // namespace lamina::analysis::layers
