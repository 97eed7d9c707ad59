// SPDX-License-Identifier: Apache-2.0
//
// Which op launched which kernel, from the order of both and from what ops are
// known to launch.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/launch_rules/launch_rules.h"

namespace lamina::graph_kernels {

struct Assignment {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t node = kNone;  // position in `ops`
  bool by_rule = false;   // a rule names the kernel; else order alone
  float margin = 0;       // score above the best other choice
};

// One assignment per kernel, in increasing order of nodes. `ops` are normalised
// targets in file order, `kernels` names in order. Names that no rule knows are
// learnt from where the others put them. Errors: more than
// kMaxCells pairs.
inline constexpr size_t kMaxCells = size_t{24} << 20;
Result<std::vector<Assignment>> AlignKernels(
    std::span<const std::string_view> ops,
    std::span<const std::string_view> kernels,
    const graph::LaunchTable& launches);

}  // namespace lamina::graph_kernels
