// SPDX-License-Identifier: Apache-2.0
//
// Which calls of two ranks are the same, when no sequence number says so.
//
// Lists that agree are paired in order, unless time says clearly that each lost
// another call. Else position alone will not do: one lost event shifts all
// later pairs. Kind and
// size alone will not do either: a training step repeats the same all-reduce,
// so a longest common subsequence cannot tell which of ten equal calls is
// missing. What tells them apart is time: calls that are the same end together
// on both ranks, up to the difference of the clocks, and that difference is the
// one on which most pairs agree.
//
// A narrow window around that difference tells a call from its neighbours, but
// clocks that run apart need a wide one; so a first match gives the drift, and
// a second one is made without it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lamina::dist {

struct AlignItem {
  uint32_t signature = 0;  // equal for calls that may be the same
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  // Ends with the same call of other ranks; a broadcast does not.
  bool ends_together = true;
};

inline constexpr int32_t kNoMatch = -1;

// For each of `other` its partner in `reference`, or kNoMatch; partners
// increase. Work grows with the length times (the difference in length + 32).
std::vector<int32_t> AlignCalls(std::span<const AlignItem> reference,
                                std::span<const AlignItem> other);

// The same by kind and order alone: a longest common subsequence.
std::vector<int32_t> AlignByOrder(std::span<const AlignItem> reference,
                                  std::span<const AlignItem> other);

}  // namespace lamina::dist
