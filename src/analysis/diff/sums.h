// SPDX-License-Identifier: Apache-2.0
//
// Device time of both sides along one dimension each: category, module, layer,
// timeline; and calls of the API.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/common/timeline.h"
#include "analysis/diff/pairs.h"
#include "analysis/layers/layers.h"

namespace lamina::analysis::diff {

struct Sum {
  std::string_view dimension;
  std::string key;
  PerSide<int64_t> count{};  // of device slices
  PerSide<int64_t> time_ns{};

  int64_t delta_ns() const { return time_ns[1] - time_ns[0]; }
};

// All device time by the family of its kernels.
std::vector<Sum> SumByCategory(const Side& a, const Side& b);
// By module; a module of B that was matched goes by its name in A.
std::vector<Sum> SumByModule(const Side& a, const Side& b,
                             const Matching& matching, const Names& names);
// By layer, over all passes. Empty when a side has no layers.
std::vector<Sum> SumByLayer(const Side& a, const Side& b,
                            const layers::Rules& rules);
// Computation, exposed communication and copies, idle, total.
std::vector<Sum> SumByTimeline(const Timeline& a, const Timeline& b);

// Calls of CUDA or HIP.
struct Calls {
  std::string call;
  PerSide<int64_t> count{};
  PerSide<int64_t> launched{};  // device slices
  PerSide<int64_t> host_ns{};
};
std::vector<Calls> SumCalls(const Side& a, const Side& b);

}  // namespace lamina::analysis::diff
