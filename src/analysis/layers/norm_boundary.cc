// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/norm_boundary.h"

#include <vector>

namespace lamina::analysis::layers {
namespace {

uint32_t OffsetOf(Marks marks, const Piece& layer, Mark norm) {
  const uint32_t p = layer.end - layer.begin;
  const auto mark = [&](uint32_t i) { return marks[layer.begin + i % p]; };
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

uint32_t NormOffset(Marks marks, const Piece& layer) {
  const uint32_t sure = OffsetOf(marks, layer, kNormMark);
  return sure < layer.end - layer.begin
             ? sure
             : OffsetOf(marks, layer, kMaybeNormMark);
}

void MoveToNorms(Marks marks, uint32_t end, Stack& stack) {
  if (marks.empty()) return;
  std::vector<uint32_t> starts;
  for (const Piece& piece : stack.pieces) {
    const uint32_t offset = NormOffset(marks, piece);
    if (offset == piece.end - piece.begin) return;
    starts.push_back(piece.begin + offset);
  }
  stack.at_norm = true;
  const size_t k = stack.per_unit;
  const size_t count = starts.size();
  // The layer after the last boundary is as long as the one a unit before.
  uint32_t last =
      starts.back() + (stack.pieces.back().end - stack.pieces.back().begin);
  if (count > k)
    last = starts.back() + starts[count - k] - starts[count - k - 1];
  if (last <= end) starts.push_back(last);
  if (starts.size() < 2) return;
  stack.pieces.clear();
  for (size_t i = 0; i + 1 < starts.size(); ++i)
    stack.pieces.push_back({starts[i], starts[i + 1], 0, true});
}

}  // namespace lamina::analysis::layers
