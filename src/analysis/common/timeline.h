// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a device went. Every nanosecond of the window is in
// exactly one of computation, exposed communication, exposed copies and idle.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/common/device_view.h"
#include "base/interval_set.h"

namespace lamina::analysis {

struct Timeline {
  Interval window;  // first start to last end
  IntervalSet computation;
  IntervalSet communication;
  IntervalSet copies;
  IntervalSet busy;
  int64_t computation_ns = 0;
  int64_t exposed_communication_ns = 0;  // communication \ computation
  int64_t exposed_copies_ns = 0;         // copies \ computation \ communication
  int64_t busy_ns = 0;
  int64_t idle_ns = 0;
  int64_t total_ns = 0;        // length of the window
  int64_t micro_idle_ns = 0;   // gaps below the threshold, when one is given
  int64_t kernel_time_ns = 0;  // sum of all durations
  size_t slices = 0;

  // Times in which nothing ran; they add up to idle_ns.
  std::vector<Interval> Gaps() const { return busy.Gaps(window); }
};

// `slices` by start. The window is from the first start to the last end.
Timeline MakeTimeline(const Trace& trace, std::span<const SliceId> slices,
                      const std::function<Bucket(SliceId)>& bucket,
                      std::optional<int64_t> micro_idle_ns = std::nullopt);

struct DeviceWork {
  std::string name;             // process:device
  std::vector<SliceId> slices;  // by start
};

// Work of each device, in the order of the streams.
std::vector<DeviceWork> WorkByDevice(const Trace& trace);

}  // namespace lamina::analysis
