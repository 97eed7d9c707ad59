// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <functional>
#include <vector>

#include "analysis/health/checks.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/run_sort.h"
#include "trace/module_frames.h"

namespace lamina::analysis::health {
namespace {

// Counts the values of the sorted `some` that the sorted `others` lack.
void Orphans(CheckTable& out, std::string_view check,
             const std::vector<int64_t>& some,
             const std::vector<int64_t>& others, std::string_view meaning) {
  int64_t count = 0;
  auto other = others.begin();
  for (const int64_t id : some) {
    while (other != others.end() && *other < id) ++other;
    count += other == others.end() || *other != id;
  }
  if (count > 0)
    out.Add({.check = check,
             .status = "info",
             .value = GroupDigits(count),
             .meaning = meaning,
             .count = count});
}

void LaunchFlows(const Context& context, CheckTable& out) {
  const Trace& trace = context.trace;
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
  // Kineto ends a flow at every API call that launched nothing, too.
  std::vector<bool> on_device(trace.tracks.size(), false);
  for (const SliceId s : trace.device_slices())
    on_device[trace.slices.track[s.value].value] = true;
  const trace::Flows& flows = trace.flows;
  for (size_t f = 0; f < flows.size(); ++f) {
    if (flows.kind[f] != trace::FlowKind::kLaunch) continue;
    if (flows.phase[f] == trace::FlowPhase::kStart) {
      starts.push_back(flows.id[f]);
    } else if (on_device[flows.track[f].value]) {
      ends.push_back(flows.id[f]);
    }
  }
  if (starts.empty() && ends.empty()) {
    if (trace.device.empty() || !trace.info.format_lacks.empty()) return;
    out.Add(
        {.check = "launch_flows",
         .status = "info",
         .value = "none",
         .meaning = "No ac2g flow events; launches are found by correlation."});
    return;
  }
  RunSort(starts, 1, std::less<>());
  RunSort(ends, 1, std::less<>());
  Orphans(out, "flows_without_end", starts, ends,
          "ac2g flows that begin at a launch and end nowhere: the device "
          "work is not in the trace.");
  Orphans(out, "flows_without_start", ends, starts,
          "ac2g flows that end at device work and begin nowhere: the launch "
          "is not in the trace.");
}

}  // namespace

void CheckRecording(const Context& context, CheckTable& out) {
  const Trace& trace = context.trace;
  const trace::Info& info = trace.info;
  if (!info.format_lacks.empty())
    out.Add({.check = "format",
             .status = "info",
             .value = info.format,
             .meaning = "Not in such files: " + info.format_lacks});
  bool shapes = false;
  bool ops = false;
  for (const trace::OpArgs& op : trace.ops) {
    ops = true;
    if (op.dims.valid()) {
      shapes = true;
      break;
    }
  }
  size_t python = 0;
  const uint32_t recorded = trace::RecordedSlices(trace);
  for (size_t i = 0; i < recorded && python == 0; ++i)
    python += trace.slices.kind[i] == trace::Kind::kPython;
  // Options of torch.profiler help only where it can record these.
  const bool possible = info.format_lacks.empty();
  if (!ops) {
    out.Add({.check = "host_ops",
             .status = "info",
             .value = "none",
             .meaning =
                 possible
                     ? "No framework ops: tables by op show API calls. Record "
                       "CPU activity."
                     : "No framework ops: tables by op show API calls."});
  }
  if (ops && (shapes || possible)) {
    out.Add({.check = "shapes",
             .status = shapes ? "ok" : "info",
             .value = shapes ? "recorded" : "none",
             .meaning =
                 shapes
                     ? "Ops carry their argument shapes."
                     : "Record with record_shapes=True for op_shapes and cost "
                       "models."});
  }
  if (python > 0 || possible) {
    out.Add(
        {.check = "python_stacks",
         .status = python > 0 ? "ok" : "info",
         .value = python > 0 ? "recorded" : "none",
         .meaning = python > 0
                        ? "Python frames are there."
                        : "Record with with_stack=True for source lines and "
                          "modules."});
  }
  const tree::Modules& modules = context.modules;
  const size_t from_ranges = trace.slices.size() -
                             trace.captured.parents.size() -
                             trace::RecordedSlices(trace);
  if (!modules.empty() || possible) {
    out.Add({.check = "modules",
             .status = modules.empty() ? "info" : "ok",
             .value = modules.empty()
                          ? "none"
                          : Counted(modules.calls().size(), "call") + " of " +
                                Counted(modules.paths().size(), "module"),
             .meaning = modules.empty() ? "Record with with_stack=True (and "
                                          "with_modules=True) for the "
                                          "module tree."
                        : from_ranges == 0
                            ? "nn.Module calls are in the trace."
                            : "Ranges of the host name calls of modules."});
  }
  LaunchFlows(context, out);
  out.Add({.check = "steps",
           .status = context.steps.steps().empty() ? "info" : "ok",
           .value = context.steps.steps().empty()
                        ? "none"
                        : fmt::format("{}", context.steps.steps().size()),
           .meaning = context.steps.steps().empty()
                          ? std::string(
                                "No step ranges: call profiler.step(), or name "
                                "ranges (step), for figures per step.")
                          : "Step ranges are in the trace: " +
                                context.steps.basis() + "."});
}

}  // namespace lamina::analysis::health
