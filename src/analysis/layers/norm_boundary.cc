// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/norm_boundary.h"

namespace lamina::analysis::layers {
namespace {

uint32_t OffsetOf(Marks marks, uint32_t begin, uint32_t end, Mark norm) {
  const uint32_t p = end - begin;
  const auto mark = [&](uint32_t i) { return marks[begin + i % p]; };
  uint32_t best = p;
  uint32_t best_distance = 2 * p;
  uint32_t first = p;
  for (uint32_t i = 0; i < p; ++i) {
    if ((mark(i) & norm) == 0) continue;
    if (first == p) first = i;
    bool product = false;
    for (uint32_t away = 1; away < p; ++away) {
      product = product || (mark(i + away) & kGemmMark) != 0;
      if ((mark(i + away) & kAttentionMark) == 0) continue;
      if (product && away < best_distance) {
        best = i;
        best_distance = away;
      }
      break;
    }
  }
  return best < p ? best : first;
}

}  // namespace

uint32_t NormOffset(Marks marks, uint32_t begin, uint32_t end) {
  const uint32_t sure = OffsetOf(marks, begin, end, kNormMark);
  return sure < end - begin ? sure
                            : OffsetOf(marks, begin, end, kMaybeNormMark);
}

}  // namespace lamina::analysis::layers
