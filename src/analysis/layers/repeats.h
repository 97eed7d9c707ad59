// SPDX-License-Identifier: Apache-2.0
//
// Repeated structure in a sequence of kernels, found without looking at a name:
// the layers of a model are what a stream does again and again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lamina::analysis::layers {

// A part of the sequence in which s[i] == s[i + period] throughout.
struct Region {
  uint32_t begin = 0;
  uint32_t end = 0;  // one past the last
  uint32_t period = 0;

  uint32_t length() const { return end - begin; }
};

// All repeats of three copies or more (the ends may lack one element each)
// whose unit has at least three different ids and at least four elements,
// with their fundamental periods, by begin; of a period that a third of the
// elements vote for, two copies are enough, and of any with `pairs`.
// Near-linear: candidates come from votes of equal q-grams, and every region is
// verified by comparing ids.
std::vector<Region> FindRegions(std::span<const uint32_t> ids,
                                bool pairs = false);

// One layer: a range of the sequence.
struct Piece {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t variant = 0;  // 0: A, 1: B ...
  bool exact = false;    // inside an exact repeat
};

// One occurrence of a stack of layers.
struct Stack {
  uint32_t kind = 0;      // equal for occurrences of the same stack
  uint32_t period = 0;    // elements of the repeated unit
  uint32_t per_unit = 1;  // layers in the unit
  bool at_norm = false;   // layers begin at a norm
  std::vector<Piece> pieces;

  uint32_t begin() const { return pieces.front().begin; }
  uint32_t end() const { return pieces.back().end; }
};

struct StackOptions {
  uint32_t min_layers = 3;
  // Longer units without an inner repeat are passes or iterations.
  uint32_t max_layer = 400;
  // Takes two equal copies for a repeat, not three.
  bool pairs = false;
};

// What is known of an element of a sequence, as bits.
enum Mark : uint8_t {
  kNoMark = 0,
  kNormMark = 1,  // a layer may begin here
  kAttentionMark = 2,
  kGemmMark = 4,
  kMaybeNormMark = 8,  // a norm that may stand inside a layer, too
  kCutMark = 16,       // a step begins here: no layer goes across
};

// The layer stacks of a sequence by begin. Boundaries are rotated onto the norm
// of the unit that a product and then attention follow soonest; `marks` may be
// empty.
std::vector<Stack> FindStacks(std::span<const uint32_t> ids,
                              std::span<const uint8_t> marks,
                              const StackOptions& options);

// A second look at what the stacks leave: layers so few or so damaged that no
// three copies are equal, or that differ in their attention. Two copies, with
// any attention, are enough for a unit here; in return only layers that begin
// at a norm and hold attention are believed. Adds to `stacks`.
void AddFaintStacks(std::span<const uint32_t> ids,
                    std::span<const uint8_t> marks, const StackOptions& options,
                    std::vector<Stack>& stacks);

// Edits that turn one sequence into the other, or `limit` + 1 when there are
// more: a dynamic program over a band of that width.
uint32_t EditDistance(std::span<const uint32_t> a, std::span<const uint32_t> b,
                      uint32_t limit);

}  // namespace lamina::analysis::layers
