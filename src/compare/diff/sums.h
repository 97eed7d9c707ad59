// SPDX-License-Identifier: Apache-2.0
//
// Device time of both sides along one dimension each (category, module, layer,
// timeline), calls of the API, and causes that add up to the difference.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/common/timeline.h"
#include "analysis/layers/layers.h"
#include "compare/diff/diff.h"
#include "compare/diff/match.h"

namespace lamina::analysis::diff {

// Device time of both sides along one dimension each: category, module, layer,
// timeline; and calls of the API.

struct Sum {
  uint32_t id = 0;
  std::string_view dimension;
  std::string key;
  PerSide<int64_t> count{};  // of device slices
  PerSide<int64_t> time_ns{};

  int64_t delta_ns() const { return time_ns[1] - time_ns[0]; }
};

struct Dimension {
  std::vector<Sum> rows;  // an id is a position before sorting
  SliceRows row_of;       // empty where rows are no sums of slices
};

// All device time by the family of its kernels.
Dimension SumByCategory(const Side& a, const Side& b);
// By module; a module of B that was matched goes by its name in A.
Dimension SumByModule(const Side& a, const Side& b, const Matching& matching,
                      const Names& names);
// By layer, over all passes. Empty when a side has no layers.
Dimension SumByLayer(const Side& a, const Side& b, const layers::Rules& rules);
// Computation, exposed communication and copies, idle, total.
Dimension SumByTimeline(const Timeline& a, const Timeline& b);

// Calls of CUDA or HIP.
struct Calls {
  std::string call;
  PerSide<int64_t> count{};
  PerSide<int64_t> launched{};  // device slices
  PerSide<int64_t> host_ns{};
};
std::vector<Calls> SumCalls(const Side& a, const Side& b);

// Why the total time differs: causes that add up to the difference, largest
// first, with what they do not explain as rows of their own.

struct Cause {
  std::string name;
  std::string change;  // of an op; empty for what is no op
  PerSide<int64_t> count{};
  PerSide<int64_t> time_ns{};
  std::vector<uint32_t> ops;  // ids of the rows that it sums up
  // Of replays and of work without a launch: the kernel that changed most.
  std::string kernel;

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
