// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/step_rows.h"

#include <algorithm>
#include <limits>

namespace lamina::analysis {
namespace {

// The rows of one device, by step; every idle nanosecond of the device is in
// exactly one of them.
std::vector<StepRow> DivideDevice(const Context& context, size_t number,
                                  const DeviceWork& device) {
  const Trace& trace = context.trace;
  const size_t steps = context.steps.steps().size();
  std::vector<std::vector<SliceId>> work(steps + 1);
  for (const SliceId s : device.slices) {
    const uint32_t step = context.steps.StepOf(s);
    work[step == tree::Steps::kOutside ? steps : step].push_back(s);
  }
  const auto bucket = [&](SliceId s) { return context.device.bucket(s); };
  std::vector<StepRow> parts;
  for (size_t i = 0; i <= steps; ++i) {
    if (work[i].empty()) continue;
    Timeline timeline = MakeTimeline(trace, work[i], bucket);
    parts.push_back({i, number, std::move(work[i]), std::move(timeline)});
  }
  std::vector<size_t> order;  // of `parts` in a step, by start
  for (size_t i = 0; i < parts.size() && parts[i].step < steps; ++i)
    order.push_back(i);
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
  const int64_t left_ns = whole.idle_ns - given;
  const bool outside = !parts.empty() && parts.back().step == steps;
  if (!outside && left_ns != 0) parts.push_back({steps, number, {}, {}});
  if (outside || left_ns != 0) parts.back().idle_ns = left_ns;
  return parts;
}

}  // namespace

StepRows StepRows::Build(const Context& context) {
  StepRows out;
  out.devices = WorkByDevice(context.trace);
  const size_t steps = context.steps.steps().size();
  if (steps == 0) return out;
  std::vector<bool> worked(steps + 1);
  for (size_t d = 0; d < out.devices.size(); ++d) {
    for (StepRow& row : DivideDevice(context, d, out.devices[d])) {
      worked[row.step] = true;
      out.rows.push_back(std::move(row));
    }
  }
  for (size_t i = 0; i < steps; ++i) {
    if (!worked[i]) out.rows.push_back({i, std::nullopt, {}, {}});
  }
  std::stable_sort(
      out.rows.begin(), out.rows.end(),
      [](const StepRow& a, const StepRow& b) { return a.step < b.step; });
  return out;
}

std::vector<uint32_t> StepRows::RowOf(const Context& context) const {
  std::vector<uint32_t> row_of(context.trace.device.size(),
                               std::numeric_limits<uint32_t>::max());
  for (size_t row = 0; row < rows.size(); ++row) {
    for (const SliceId s : rows[row].work)
      row_of[context.trace.slices.detail[s.value]] = static_cast<uint32_t>(row);
  }
  return row_of;
}

}  // namespace lamina::analysis
