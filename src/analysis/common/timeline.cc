// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/timeline.h"

#include <algorithm>

#include "base/run_sort.h"

namespace lamina::analysis {

Timeline MakeTimeline(const Trace& trace, std::span<const SliceId> slices,
                      const std::function<Bucket(SliceId)>& bucket,
                      std::optional<int64_t> micro_idle_ns) {
  Timeline t;
  t.slices = slices.size();
  if (slices.empty()) return t;
  const int64_t first = trace.Start(slices.front());
  int64_t last = first;
  for (const SliceId s : slices) {
    const Interval interval{trace.Start(s), trace.End(s)};
    last = std::max(last, interval.end_ns);
    t.kernel_time_ns += interval.length_ns();
    switch (bucket(s)) {
      case Bucket::kCompute:
        t.computation.AppendSorted(interval);
        break;
      case Bucket::kCommunication:
        t.communication.AppendSorted(interval);
        break;
      case Bucket::kMemcpy:
        t.copies.AppendSorted(interval);
        break;
    }
  }
  const IntervalSet work = t.computation.Union(t.communication);
  t.busy = work.Union(t.copies);
  t.computation_ns = t.computation.length_ns();
  t.exposed_communication_ns = t.communication.Minus(t.computation).length_ns();
  t.exposed_copies_ns = t.copies.Minus(work).length_ns();
  t.busy_ns = t.busy.length_ns();
  t.window = {first, last};
  t.total_ns = last - first;
  t.idle_ns = t.total_ns - t.busy_ns;
  if (micro_idle_ns) {
    for (const Interval& gap : t.Gaps()) {
      if (gap.length_ns() < *micro_idle_ns) t.micro_idle_ns += gap.length_ns();
    }
  }
  return t;
}

std::vector<DeviceWork> WorkByDevice(const Trace& trace) {
  std::vector<DeviceWork> devices;
  for (const trace::Stream& stream : trace.streams) {
    std::string name = trace.DeviceName(stream);
    if (devices.empty() || devices.back().name != name)
      devices.push_back({std::move(name), {}});
    auto& slices = devices.back().slices;
    slices.insert(slices.end(), stream.slices.begin(), stream.slices.end());
  }
  for (DeviceWork& device : devices) {
    // Streams are sorted: they are merged.
    RunSort(device.slices, 1, [&](SliceId a, SliceId b) {
      return std::pair(trace.Start(a), trace.Uid(a)) <
             std::pair(trace.Start(b), trace.Uid(b));
    });
  }
  return devices;
}

}  // namespace lamina::analysis
