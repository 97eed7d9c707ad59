// SPDX-License-Identifier: Apache-2.0
//
// Which steps of a recording are like those of a long run: not the slow first
// ones, and not those that the recording cuts.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/host/model.h"

namespace lamina::analysis::host {

struct StepFlags {
  int64_t period_ns = 0;  // start to start; of the last step its own length
  size_t events = 0;      // of the device
  // A leading step above 1.5 times the median period of the later half.
  bool warmup = false;
  // The first or the last step, with fewer than 0.9 times the usual events.
  bool cut = false;
  // Behind the warm-up, and longer than their median by 5 times the median
  // distance from it and by 2 %.
  bool outlier = false;
  bool steady() const { return !warmup && !cut; }
};

// One entry per step. Below 3 steps nothing is usual, and no step is flagged.
std::vector<StepFlags> FlagSteps(const HostModel& model);

// Of the steps behind the warm-up.
struct StepSpread {
  size_t warmup = 0;             // steps before them
  std::vector<int64_t> periods;  // of each
  int64_t median_ns = 0;
  int64_t mad_ns = 0;  // median distance from the median
  bool Stands(int64_t period_ns) const {
    const int64_t excess = period_ns - median_ns;
    // More than 5 distances, and 2 %; without overflow.
    return excess > 0 && (excess - 1) / 5 >= mad_ns && excess > median_ns / 50;
  }
};
StepSpread SpreadOf(const std::vector<StepFlags>& flags);

// Whether a device event belongs to the steady part: to a steady step, or to
// no step at all in a recording that has none. `flags` are those of FlagSteps.
bool IsSteady(const HostModel& model, const std::vector<StepFlags>& flags,
              SliceId s);

}  // namespace lamina::analysis::host
