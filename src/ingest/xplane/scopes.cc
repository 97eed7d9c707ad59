// SPDX-License-Identifier: Apache-2.0
//
// The named scopes of instructions become module frames around their runs.
#include <algorithm>

#include "ingest/xplane/runs.h"

namespace lamina::ingest::xplane {

Waiting<Scope> MakeScopes(const Waiting<Run>& runs, const Programs& programs) {
  Waiting<Scope> scopes;
  std::vector<Scope> open;
  uint32_t begun = 0;
  const auto close = [&](size_t keep) {
    while (open.size() > keep) {
      scopes.push_back(open.back());
      open.pop_back();
    }
  };
  const Run* before = nullptr;
  for (size_t i = runs.size(); i-- > 0;) {
    const Run& run = runs[i];
    const auto& path = programs.ran(run.instruction).scopes;
    size_t keep = 0;
    if (before != nullptr && before->track == run.track &&
        before->execution == run.execution) {
      while (keep < open.size() && keep < path.size() &&
             open[keep].name == path[keep])
        ++keep;
    }
    close(keep);
    for (size_t d = 0; d < keep; ++d)
      open[d].end_ns = std::max(open[d].end_ns, run.end_ns);
    for (size_t d = keep; d < path.size(); ++d) {
      open.push_back({run.start_ns, run.end_ns, run.track, path[d],
                      static_cast<uint32_t>(d), begun++});
    }
    before = &run;
  }
  close(0);
  return scopes;
}

}  // namespace lamina::ingest::xplane
