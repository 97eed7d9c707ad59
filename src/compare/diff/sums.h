// SPDX-License-Identifier: Apache-2.0
//
// Device time of both sides along one dimension each: category, module, layer,
// timeline; and calls of the API.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/common/timeline.h"
#include "analysis/layers/layers.h"
#include "compare/diff/pairs.h"

namespace lamina::analysis::diff {

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

}  // namespace lamina::analysis::diff
