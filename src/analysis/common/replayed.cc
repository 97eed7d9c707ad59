// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/replayed.h"

#include "trace/categories.h"

namespace lamina::analysis {

using trace::SliceId;

std::vector<bool> ReplayedWork(const tree::Tree& tree) {
  const trace::Trace& trace = tree.trace();
  std::vector<bool> replayed(trace.slices.size());
  for (const SliceId s : trace.device_slices()) {
    const trace::DeviceArgs* const args = trace.Device(s);
    // Kineto writes 0 for work outside of graphs.
    if (args != nullptr && args->graph_node_id > 0) replayed[s.value] = true;
  }
  for (uint32_t n = 0; n < tree.size(); ++n) {
    const tree::NodeId node(n);
    if (!trace::IsApiCall(tree.kind(node)) ||
        !trace::IsGraphLaunch(tree.name(node)))
      continue;
    for (const SliceId s : tree.DeviceWork(node)) replayed[s.value] = true;
  }
  return replayed;
}

}  // namespace lamina::analysis
