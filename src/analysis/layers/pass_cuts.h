// SPDX-License-Identifier: Apache-2.0
//
// Where a pass ends between two layers: evidence with weights. A step or a
// graph launch decides alone, and so does what stands between passes by its
// name; kernels that stand in gaps between layers only, idle time and a host
// that waited decide together, and more when the parts they make are equal.
#pragma once

#include <string>
#include <vector>

#include "analysis/layers/lanes.h"
#include "analysis/layers/structure.h"

namespace lamina::analysis::layers {

struct PassCut {
  double weight = 0;     // of all evidence
  std::string evidence;  // "graph, idle"; empty where nothing speaks
  bool cut() const { return weight >= kPassWeight; }
  static constexpr double kPassWeight = 0.75;
};

// One for every layer: what speaks for a pass that begins before it. `waits`
// are the ends of host calls that wait for the device, in order.
std::vector<PassCut> FindPassCuts(const Context& context, const Lane& lane,
                                  const LaneView& view,
                                  const Structure& structure,
                                  const std::vector<int64_t>& waits);

}  // namespace lamina::analysis::layers
