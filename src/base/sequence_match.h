// SPDX-License-Identifier: Apache-2.0
//
// Which elements of two sequences correspond: the longest common subsequence
// (Myers, "An O(ND) difference algorithm and its variations", 1986) in linear
// memory and near-linear time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lamina {

struct SequencePair {
  uint32_t a = 0;
  uint32_t b = 0;

  friend bool operator==(const SequencePair&, const SequencePair&) = default;
};

// Positions of equal elements, increasing in both sequences. As many as
// possible unless a stretch needs more than `max_edits` insertions and
// deletions: there the search stops at the point reached and goes on behind
// it, so that time stays below (n + m) * max_edits. Deterministic.
std::vector<SequencePair> MatchSequences(std::span<const uint64_t> a,
                                         std::span<const uint64_t> b,
                                         uint32_t max_edits = 1024);

}  // namespace lamina
