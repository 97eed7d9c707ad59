// SPDX-License-Identifier: Apache-2.0
//
// A sequence read as known units and what stands between them. Exact copies are
// taken first; what lies between two of them is aligned, so that layers with
// kernels missing, added or exchanged count, too.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/types/span.h>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/layers/structure.h"

namespace lamina::analysis::layers {

// Share of the kernels of a layer that may differ from its unit.
inline constexpr double kReadTolerance = 0.34;

// One kind of layer.
struct Unit {
  std::vector<uint32_t> ids;
  std::vector<uint32_t> like;
  std::vector<uint16_t> marks;
  uint32_t group = 0;      // units of one repeat share it
  uint32_t per_unit = 1;   // units of that repeat
  uint32_t of_period = 0;  // its period where it is all of the repeat
  uint32_t phase = 0;      // a unit that begins at the same place of a layer
  bool at_norm = false;
  bool by_roles = false;
};

class Reader {
 public:
  Reader(const Sequence& in, const std::vector<Unit>& units);
  // The layers of [begin, end).
  std::vector<Found> Read(uint32_t begin, uint32_t end);

 private:
  std::optional<Found> InTwoPieces(uint32_t begin, uint32_t end,
                                   uint32_t unit) const;
  // `inside`: layers stand on both sides.
  void Between(uint32_t begin, uint32_t end, bool inside,
               std::vector<Found>& out);
  std::vector<Found> Align(uint32_t begin, uint32_t end, bool inside) const;
  // The longest unit that stands at a place; -1: none.
  int UnitAt(uint32_t at, uint32_t end) const;
  bool GoesOn(uint32_t unit, uint32_t at, uint32_t end) const;
  void FindLonger();

  const Sequence& in_;
  const std::vector<Unit>& units_;
  absl::flat_hash_map<uint32_t, std::vector<uint32_t>> by_first_;
  // By unit: longer ones that begin like it, and where they go on.
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> longer_;
  absl::flat_hash_map<absl::Span<const uint32_t>, std::vector<Found>> known_[2];
  uint32_t shortest_ = UINT32_MAX;
};

}  // namespace lamina::analysis::layers
