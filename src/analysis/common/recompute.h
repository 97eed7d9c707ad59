// SPDX-License-Identifier: Apache-2.0
//
// Work that activation checkpointing does a second time.
#pragma once

#include <vector>

#include "tree/tree.h"

namespace lamina::analysis {

// By node: true below a Python frame of torch/utils/checkpoint.py's
// recompute_fn. Needs a tree with Python frames; all false without them.
std::vector<bool> FindRecompute(const tree::Tree& tree);

}  // namespace lamina::analysis
