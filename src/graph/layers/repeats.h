// SPDX-License-Identifier: Apache-2.0
//
// Layers of a graph whose weights have no names: the op sequence repeats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lamina::graph {

// [begin, end) of the op sequence.
struct Repeat {
  size_t begin = 0;
  size_t end = 0;
};

// Beyond this many ops nothing is looked for.
inline constexpr size_t kMaxRepeatOps = 20000;

// The repeats of the shortest unit that covers 60 % of the sequence with at
// least three of them; a repeat that differs (an odd layer) is one all the
// same. Empty when there is no such unit.
std::vector<Repeat> FindRepeats(std::span<const uint32_t> ops);

}  // namespace lamina::graph
