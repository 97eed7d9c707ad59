// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fmt/core.h>
#include <string>

#include "analysis/common/lost_work.h"
#include "analysis/health/checks.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "trace/categories.h"

namespace lamina::analysis::health {
namespace {

// Of the replayed work, how much has its captured call.
void Replayed(const trace::Captured& captured, const std::string& value,
              size_t graph_kernels, CheckTable& out) {
  size_t facts = 0;
  size_t likely = 0;
  for (size_t row = 0; row < captured.calls.size(); ++row) {
    if (!captured.calls[row].valid()) continue;
    ++(captured.facts[row] != 0 ? facts : likely);
  }
  const size_t rest = graph_kernels - facts - likely;
  out.Add({.check = "graph_launches",
           .status = rest == 0 && likely == 0 ? "ok" : "info",
           .value = value,
           .meaning = fmt::format(
               "{} stand below the call that they were captured from for "
               "sure, {} below the likely one, {} below the launch. "
               "Captured calls have no host time.",
               GroupDigits(static_cast<int64_t>(facts)),
               GroupDigits(static_cast<int64_t>(likely)),
               GroupDigits(static_cast<int64_t>(rest))),
           .count = static_cast<int64_t>(facts)});
}

}  // namespace

void CheckLaunches(const Context& context, CheckTable& out) {
  const Trace& trace = context.trace;
  size_t graph_launches = 0;
  size_t graph_kernels = 0;
  for (uint32_t n = 0; n < context.tree.size(); ++n) {
    const NodeId node(n);
    if (!trace::IsApiCall(context.tree.kind(node))) continue;
    // A captured call need not be replayed.
    if (!trace::IsGraphLaunch(context.tree.name(node)) ||
        trace.captured.Has(context.tree.slice(node)))
      continue;
    ++graph_launches;
    graph_kernels += context.tree.DeviceWork(node).size();
  }
  const LaunchesWithoutWork lost = FindLaunchesWithoutWork(context.tree);
  if (lost.without > 0) {
    out.Add(
        {.check = "launches_without_work",
         .status = lost.Doubtful() ? "warn" : "info",
         .value = lost.Text(),
         .meaning =
             lost.Doubtful()
                 ? "Records of device work are missing: the profiler dropped "
                   "them. Sums and busy time are too low, idle time is too "
                   "high. Record a shorter window or with larger buffers."
                 : "Launch calls whose device work is not in the trace: it ran "
                   "after the end of the recording, or the events were "
                   "dropped.",
         .count = static_cast<int64_t>(lost.without),
         .percent = 100.0 * static_cast<double>(lost.without) /
                    static_cast<double>(lost.launches)});
  }
  if (graph_launches > 0) {
    const std::string value = Counted(graph_launches, "launch", "launches") +
                              ", " + Counted(graph_kernels, "device event");
    if (trace.captured.empty()) {
      out.Add({.check = "graph_launches",
               .status = "info",
               .value = value,
               .meaning = "Replayed work has no op of its own: give the "
                          "trace of the capture (capture) to see ops, shapes "
                          "and modules.",
               .count = static_cast<int64_t>(graph_launches)});
    } else {
      Replayed(trace.captured, value, graph_kernels, out);
    }
  }
}

}  // namespace lamina::analysis::health
