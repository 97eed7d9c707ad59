// SPDX-License-Identifier: Apache-2.0
//
// What differs between two sides, wherever it comes from, as tables and notes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare/diff/diff.h"
#include "compare/diff/match.h"
#include "compare/diff/sums.h"

namespace lamina::analysis::diff {

struct SideFacts {
  std::string input;
  std::string device;  // may be empty
  int64_t steps = 0;
  int64_t device_slices = 0;
  bool modules = false;
  Totals totals;
  int64_t unlinked_ns = 0;
};

struct MovedRow {
  StringId name, module;
  PerSide<int64_t> time_ns{};
  PerSide<std::optional<uint32_t>> uid;
};

struct Differences {
  char letter = 'B';  // what sentences call the second side
  Names names;
  PerSide<SideFacts> sides;
  PairRows rows;
  std::vector<Dimension> dimensions;
  std::vector<Calls> calls;
  std::vector<MovedRow> moved;
};

Comparison MakeComparison(Differences differences);

}  // namespace lamina::analysis::diff
