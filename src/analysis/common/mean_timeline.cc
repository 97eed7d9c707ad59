// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/mean_timeline.h"

namespace lamina::analysis {

MeanTimeline MeanOf(const std::vector<Timeline>& devices, int64_t total_ns) {
  MeanTimeline mean;
  mean.total_ns = total_ns;
  if (devices.empty()) return mean;
  for (const Timeline& t : devices) {
    mean.exposed_communication_ns += t.exposed_communication_ns;
    mean.exposed_copies_ns += t.exposed_copies_ns;
    mean.busy_ns += t.busy_ns;
    mean.communication_ns += t.communication.length_ns();
    mean.copies_ns += t.copies.length_ns();
  }
  const auto n = static_cast<int64_t>(devices.size());
  for (int64_t* part : {&mean.exposed_communication_ns, &mean.exposed_copies_ns,
                        &mean.busy_ns, &mean.communication_ns, &mean.copies_ns})
    *part /= n;
  mean.computation_ns =
      mean.busy_ns - mean.exposed_communication_ns - mean.exposed_copies_ns;
  mean.idle_ns = total_ns - mean.busy_ns;
  return mean;
}

}  // namespace lamina::analysis
