// SPDX-License-Identifier: Apache-2.0
//
// Which entry of one side is which of the other. From the top down: the
// children of two matched entries are aligned in their order so that most names
// find their equal; where several alignments do, entries that agree in kernels,
// then those that agree in shapes and structure, are joined first. What is left
// is unwrapped where its inside continues on the other side, and looked for at
// another place of the same list. Equal subtrees are matched without looking
// inside, so time is near-linear.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "compare/diff/side.h"

namespace lamina::analysis::diff {

struct Matching {
  // By entry: the partner on the other side, or kNone.
  std::vector<uint32_t> partner_a;
  std::vector<uint32_t> partner_b;
  // Pairs that stand at another place among their siblings.
  std::vector<std::pair<uint32_t, uint32_t>> moved;
};

Matching MatchSides(const Side& a, const Side& b);

}  // namespace lamina::analysis::diff
