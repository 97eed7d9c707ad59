// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/step_rows.h"

#include <algorithm>
#include <limits>

namespace lamina::analysis {
namespace {

// The parts of one device, by step; every idle nanosecond of the device is in
// exactly one of them.
std::vector<StepRow> DivideDevice(const Context& context, size_t number,
                                  const DeviceWork& device) {
  const Trace& trace = context.trace;
  const size_t steps = context.steps.steps().size();
  std::vector<StepRow> parts(steps + 1);
  std::vector<std::vector<SliceId>> work(steps + 1);
  for (const SliceId s : device.slices) {
    const uint32_t step = context.steps.StepOf(s);
    work[step == tree::Steps::kOutside ? steps : step].push_back(s);
  }
  const auto bucket = [&](SliceId s) { return context.device.bucket(s); };
  std::vector<size_t> order;  // steps with work, by its start
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].step = i;
    parts[i].device = number;
    parts[i].timeline = MakeTimeline(trace, work[i], bucket);
    if (i < steps && !work[i].empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return parts[a].timeline.window.start_ns <
           parts[b].timeline.window.start_ns;
  });
  const Timeline whole = MakeTimeline(trace, device.slices, bucket);
  const std::vector<Interval> gaps = whole.Gaps();
  const auto idle_within = [&](int64_t from, int64_t to) {
    int64_t idle = 0;
    auto gap = std::partition_point(
        gaps.begin(), gaps.end(),
        [&](const Interval& g) { return g.end_ns <= from; });
    for (; gap != gaps.end() && gap->start_ns < to; ++gap)
      idle += std::min(gap->end_ns, to) - std::max(gap->start_ns, from);
    return idle;
  };
  int64_t given = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    StepRow& part = parts[order[k]];
    const Interval& window = part.timeline.window;
    const int64_t next = k + 1 < order.size()
                             ? parts[order[k + 1]].timeline.window.start_ns
                             : window.end_ns;
    part.idle_ns = idle_within(window.start_ns, next);
    part.overlap_ns = std::max<int64_t>(0, window.end_ns - next);
    given += part.idle_ns;
  }
  parts[steps].idle_ns = whole.idle_ns - given;
  return parts;
}

}  // namespace

StepRows StepRows::Build(const Context& context) {
  StepRows out;
  out.devices = WorkByDevice(context.trace);
  const size_t steps = context.steps.steps().size();
  if (steps == 0) return out;
  std::vector<std::vector<StepRow>> parts;
  for (size_t d = 0; d < out.devices.size(); ++d)
    parts.push_back(DivideDevice(context, d, out.devices[d]));
  for (size_t i = 0; i <= steps; ++i) {
    const size_t before = out.rows.size();
    for (std::vector<StepRow>& device : parts) {
      StepRow& part = device[i];
      if (part.timeline.slices > 0 || (i == steps && part.idle_ns != 0))
        out.rows.push_back(std::move(part));
    }
    if (i < steps && out.rows.size() == before) {
      out.rows.emplace_back();
      out.rows.back().step = i;
    }
  }
  return out;
}

std::vector<uint32_t> StepRows::RowOf(const Context& context) const {
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  const size_t steps = context.steps.steps().size();
  std::vector<uint32_t> row_at((steps + 1) * devices.size(), kNone);
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].device)
      row_at[rows[row].step * devices.size() + *rows[row].device] =
          static_cast<uint32_t>(row);
  }
  std::vector<uint32_t> row_of(context.trace.device.size(), kNone);
  if (steps == 0) return row_of;
  for (size_t d = 0; d < devices.size(); ++d) {
    for (const SliceId s : devices[d].slices) {
      const uint32_t step = context.steps.StepOf(s);
      row_of[context.trace.slices.detail[s.value]] =
          row_at[(step == tree::Steps::kOutside ? steps : step) *
                     devices.size() +
                 d];
    }
  }
  return row_of;
}

}  // namespace lamina::analysis
