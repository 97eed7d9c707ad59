// SPDX-License-Identifier: Apache-2.0
//
// Frames and ranges in which a thread waits for other processes
// (data/waits/outside.yaml).
#pragma once

#include <vector>

#include "analysis/host/model.h"

namespace lamina::analysis::path {

struct OutsideFrame {
  SliceId slice;
  bool waits = false;  // it does nothing else; false: perhaps
  // A range that was recorded as an op ("Optimizer.step#..."): work.
  bool op = false;
};

// By thread of the model, each by start.
std::vector<std::vector<OutsideFrame>> OutsideFrames(
    const host::HostModel& model);

}  // namespace lamina::analysis::path
