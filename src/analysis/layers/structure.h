// SPDX-License-Identifier: Apache-2.0
//
// The layers of a sequence of kernels. Units come from repeats and, where names
// say what kernels do, from what a layer holds: one mixer and one feed-forward
// part behind a norm. The sequence is then read as units and what stands
// between them, so that damaged layers count and a pass that repeats as well as
// its layers is not taken for one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/layers/repeats.h"

namespace lamina::analysis::layers {

struct Sequence {
  std::span<const uint32_t> ids;  // names
  // Names that differ in numbers only (tiles, template arguments) are alike.
  std::span<const uint32_t> like;
  Marks marks;
};

// A layer of a sequence.
struct Found {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t unit = 0;    // of the kind of layer
  uint32_t family = 0;  // kinds of one stack share it
  bool exact = false;   // equals its unit
};

struct Structure {
  std::vector<Found> layers;  // by begin, disjoint
  uint32_t families = 0;
  // By family: kernels of its most frequent unit, whether it begins at a norm,
  // and layers that one repeat holds.
  struct Family {
    uint32_t period = 0;
    uint32_t per_unit = 1;
    bool at_norm = false;
    bool by_roles = false;  // no repeat, only what its kernels do
  };
  std::vector<Family> of_family;
};

Structure FindStructure(const Sequence& sequence, const StackOptions& options);

}  // namespace lamina::analysis::layers
