// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/recompute.h"

namespace lamina::analysis {

std::vector<bool> FindRecompute(const tree::Tree& tree) {
  const trace::Trace& trace = tree.trace();
  std::vector<bool> recompute(tree.size(), false);
  std::vector<int8_t> is_frame(trace.strings.size(), -1);
  for (uint32_t n = 0; n < tree.size(); ++n) {
    const tree::NodeId node(n);
    const tree::NodeId parent = tree.parent(node);
    if (parent.valid() && recompute[parent.value]) {
      recompute[n] = true;
      continue;
    }
    if (tree.kind(node) != trace::Kind::kPython) continue;
    const StringId name = trace.slices.name[tree.slice(node).value];
    int8_t& known = is_frame[name.value];
    if (known < 0) {
      const std::string_view text = trace.Text(name);
      known =
          text.find("torch/utils/checkpoint.py") != std::string_view::npos &&
          text.find("recompute_fn") != std::string_view::npos;
    }
    // The frame itself is marked too, which no table of device work shows.
    recompute[n] = known > 0;
  }
  return recompute;
}

}  // namespace lamina::analysis
