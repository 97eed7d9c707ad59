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
  bool by_name = false;   // the kernel has the name of the node
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

// The same for instructions of XLA, which give kernels their names: "fusion.12"
// launches "fusion_12". `calls` are those that call a library, whose kernels
// have names of its own: they get what runs between two others, where it is of
// one call or as many kernels as calls. No kernel with a name of an
// instruction: nothing is assigned.
std::vector<Assignment> AlignByName(
    std::span<const std::string_view> instructions,
    const std::vector<bool>& calls, std::span<const std::string_view> kernels);

}  // namespace lamina::graph_kernels
