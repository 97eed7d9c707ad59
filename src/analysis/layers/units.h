// SPDX-License-Identifier: Apache-2.0
//
// Which of the repeats inside each other is a layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/layers/repeats.h"

namespace lamina::analysis::layers {

// The regions that are stacks, by begin. One that smaller repeats fill by half
// is a pass, and those are looked at instead.
std::vector<Region> ChooseLevel(std::vector<Region> regions);

// Lengths of the layers in a unit: one, or k when k nearly equal pieces make
// it up (layers that alternate).
std::vector<uint32_t> SplitUnit(std::span<const uint32_t> unit);

}  // namespace lamina::analysis::layers
