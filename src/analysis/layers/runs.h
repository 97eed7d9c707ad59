// SPDX-License-Identifier: Apache-2.0
//
// Runs of layers: those of one stack in one pass.
#pragma once

#include <vector>

#include "analysis/layers/pass_cuts.h"

namespace lamina::analysis::layers {

struct StackRun {
  size_t begin = 0;  // of Structure::layers
  size_t end = 0;
  uint32_t stack = 0;
  size_t typical = 0;  // a layer that most of its stack equal
  size_t usual = 0;    // layers of most runs of its stack
};

// The runs of a stream by begin. Layers of one family are two stacks where
// passes of two lengths come again and again: a draft and its target.
std::vector<StackRun> FindRuns(const LaneView& view, const Structure& structure,
                               const std::vector<PassCut>& cuts,
                               const StackOptions& options);

}  // namespace lamina::analysis::layers
