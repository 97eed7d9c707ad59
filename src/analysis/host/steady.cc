// SPDX-License-Identifier: Apache-2.0
#include "analysis/host/steady.h"

#include <algorithm>
#include <cstdlib>

namespace lamina::analysis::host {

std::vector<StepFlags> FlagSteps(const HostModel& model) {
  constexpr size_t kLeastSteps = 3;
  const auto& steps = model.context().steps;
  std::vector<StepFlags> flags(steps.steps().size());
  for (size_t i = 0; i < flags.size(); ++i) {
    const Interval host = steps.steps()[i].host;
    flags[i].period_ns =
        i + 1 < flags.size()
            ? std::max<int64_t>(
                  0, steps.steps()[i + 1].host.start_ns - host.start_ns)
            : host.length_ns();
  }
  for (const SliceId s : model.trace().device_slices()) {
    const uint32_t step = steps.StepOf(s);
    if (step != tree::Steps::kOutside) ++flags[step].events;
  }
  if (flags.size() < kLeastSteps) return flags;
  std::vector<int64_t> later, events;
  for (size_t i = 0; i < flags.size(); ++i) {
    if (i >= flags.size() / 2) later.push_back(flags[i].period_ns);
    events.push_back(static_cast<int64_t>(flags[i].events));
  }
  const int64_t usual = Pick(later, 0.5);
  const int64_t usual_events = Pick(events, 0.5);
  for (size_t i = 0; i + 2 < flags.size(); ++i) {
    if (2 * flags[i].period_ns <= 3 * usual) break;
    flags[i].warmup = true;
  }
  for (StepFlags* end : {&flags.front(), &flags.back()})
    end->cut = 10 * static_cast<int64_t>(end->events) < 9 * usual_events;
  const StepSpread spread = SpreadOf(flags);
  for (size_t i = spread.warmup; i < flags.size(); ++i)
    flags[i].outlier = spread.Stands(flags[i].period_ns);
  return flags;
}

StepSpread SpreadOf(const std::vector<StepFlags>& flags) {
  StepSpread spread;
  while (spread.warmup < flags.size() && flags[spread.warmup].warmup)
    ++spread.warmup;
  for (size_t i = spread.warmup; i < flags.size(); ++i)
    spread.periods.push_back(flags[i].period_ns);
  spread.median_ns = Pick(spread.periods, 0.5);
  std::vector<int64_t> distances;
  for (const int64_t period : spread.periods)
    distances.push_back(std::abs(period - spread.median_ns));
  spread.mad_ns = Pick(distances, 0.5);
  return spread;
}

bool IsSteady(const HostModel& model, const std::vector<StepFlags>& flags,
              SliceId s) {
  if (flags.empty()) return true;
  const uint32_t step = model.context().steps.StepOf(s);
  return step != tree::Steps::kOutside && flags[step].steady();
}

}  // namespace lamina::analysis::host
