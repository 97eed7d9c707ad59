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

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
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

// What became of the device work of two matched sides: every linked slice of
// either side is in exactly one OpRow, every slice in exactly one KernelRow.
//
// Work of an unmatched entry below a matched op belongs to that op when the
// other side has left-over work there as well: the op is done by other kernels.
// Elsewhere an unmatched entry is work that only one side has.

enum class Change : uint8_t {
  kChanged,  // same op, same shapes, same kernels; another time or count
  kOnlyA,
  kOnlyB,
  kOtherKernel,
  kOtherShape,
  kOtherType,  // other shapes or types
};
std::string_view ChangeName(Change change);

// By side: 0 is A, 1 is B.
template <class T>
using PerSide = std::array<T, 2>;

// Which row counts a device slice, by its row of device arguments: the id of
// the row, kNone for none.
using SliceRows = PerSide<std::vector<uint32_t>>;

struct OpRow {
  uint32_t id = 0;  // position before any sorting
  StringId op, module;
  StringId module_b;       // of the first call in B where it differs
  PerSide<StringId> dims;  // invalid: not recorded
  PerSide<StringId> types;
  Change change = Change::kChanged;
  PerSide<int64_t> count{};  // calls
  PerSide<int64_t> time_ns{};
  PerSide<std::optional<uint32_t>> uid;  // of the first call

  int64_t delta_ns() const { return time_ns[1] - time_ns[0]; }
  bool equal() const {
    return change == Change::kChanged && count[0] == count[1] &&
           time_ns[0] == time_ns[1];
  }
};

struct KernelRow {
  uint32_t id = 0;
  StringId op;               // empty: unlinked
  PerSide<StringId> kernel;  // invalid: no counterpart
  PerSide<int64_t> count{};
  PerSide<int64_t> time_ns{};

  int64_t delta_ns() const { return time_ns[1] - time_ns[0]; }
  bool equal() const {
    return kernel[0] == kernel[1] && count[0] == count[1] &&
           time_ns[0] == time_ns[1];
  }
};

// Both in the order of their first slice.
struct PairRows {
  std::vector<OpRow> ops;
  std::vector<KernelRow> kernels;
  SliceRows op_of, kernel_of;
};

PairRows CollectRows(const Side& a, const Side& b, const Matching& matching);

}  // namespace lamina::analysis::diff
