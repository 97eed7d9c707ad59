// SPDX-License-Identifier: Apache-2.0
//
// Work of replayed CUDA and HIP graphs.
#pragma once

#include <string_view>
#include <vector>

#include "tree/tree.h"

namespace lamina::analysis {

// By slice: whether it is device work that a graph launch replayed. A node id
// of the file says so, else the launch.
std::vector<bool> ReplayedWork(const tree::Tree& tree);

}  // namespace lamina::analysis
