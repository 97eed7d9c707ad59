// SPDX-License-Identifier: Apache-2.0
//
// Launches whose device work is in no record: what a profiler drops when its
// buffers are full, or what ran after the recording had ended.
#pragma once

#include <cstddef>
#include <string>

#include "tree/tree.h"

namespace lamina::analysis {

struct LaunchesWithoutWork {
  // Launches of kernels and graphs that ran: those that are captured into a
  // graph are no launches.
  size_t launches = 0;
  size_t without = 0;
  size_t leading = 0;   // of them, before the first launch with work
  size_t trailing = 0;  // behind the last

  // Too many for the end of a recording: conclusions from idle time and sums
  // are void.
  bool Doubtful() const;
  // "100 of 200 launches (50 %) have no device record, the first 100 in a row"
  std::string Text() const;
};

LaunchesWithoutWork FindLaunchesWithoutWork(const tree::Tree& tree);

}  // namespace lamina::analysis
