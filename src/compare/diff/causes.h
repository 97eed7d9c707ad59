// SPDX-License-Identifier: Apache-2.0
//
// Why the total time differs: causes that add up to the difference, largest
// first, with what they do not explain as rows of their own.
#pragma once

#include <string>
#include <vector>

#include "compare/diff/diff.h"
#include "compare/diff/pairs.h"

namespace lamina::analysis::diff {

struct Cause {
  std::string name;
  std::string change;  // of an op; empty for what is no op
  PerSide<int64_t> count{};
  PerSide<int64_t> time_ns{};
  std::vector<uint32_t> ops;  // ids of the rows that it sums up

  int64_t delta_ns() const { return time_ns[1] - time_ns[0]; }
};

inline constexpr std::string_view kUnlinkedCause = "(unlinked)";

// Ops by the sum of their device time, then "(other ops)", "(unlinked)",
// "(overlap)": busy time less the sum of durations, and "(idle)". Their times
// add up to the total time of each side, if unchanged ops are counted.
std::vector<Cause> FindCauses(const PairRows& rows, const Names& names,
                              const PerSide<Totals>& totals,
                              const PerSide<int64_t>& unlinked_ns);

// One sentence, in which the second side has this letter.
std::string Verdict(const std::vector<Cause>& causes,
                    const PerSide<Totals>& totals, char letter);

// "+1.2 ms", "-3 us".
std::string SignedTime(int64_t ns);

}  // namespace lamina::analysis::diff
