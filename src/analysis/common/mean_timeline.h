// SPDX-License-Identifier: Apache-2.0
//
// Means over devices of where their time went, each in the window of all; they
// add up as those of one device do. A union over devices hides that each of
// them waits for another one.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/common/timeline.h"

namespace lamina::analysis {

struct MeanTimeline {
  int64_t total_ns = 0;  // of the window of all
  int64_t computation_ns = 0;
  int64_t exposed_communication_ns = 0;
  int64_t exposed_copies_ns = 0;
  int64_t busy_ns = 0;
  int64_t idle_ns = 0;
  int64_t communication_ns = 0;
  int64_t copies_ns = 0;
};
MeanTimeline MeanOf(const std::vector<Timeline>& devices, int64_t total_ns);

}  // namespace lamina::analysis
