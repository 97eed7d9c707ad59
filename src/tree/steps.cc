// SPDX-License-Identifier: Apache-2.0
#include "tree/steps.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>

#include "base/decimal.h"

namespace lamina::tree {
namespace {

constexpr std::string_view kProfilerStep = "ProfilerStep#";

}  // namespace

bool IsEngineStep(std::string_view name) {
  for (const std::string_view prefix :
       {"execute_context_", "execute_diffusion_", "step[",
        "[Executor] _forward_step ", "prefill[", "decode["}) {
    if (name.starts_with(prefix)) return true;
  }
  // execute_<tokens>_context_...
  if (!name.starts_with("execute_")) return false;
  const size_t digits = name.find_first_not_of("0123456789", 8);
  return digits != std::string_view::npos && digits > 8 &&
         name.substr(digits).starts_with("_context_");
}

Steps Steps::Build(const Tree& tree) {
  const Trace& trace = tree.trace();
  Steps steps;
  steps.tree_ = &tree;
  std::vector<SliceId> profiler;
  std::vector<SliceId> engine;
  const trace::Slices& slices = trace.slices;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (slices.kind[i] != trace::Kind::kAnnotation) continue;
    const std::string_view name = trace.strings[slices.name[i]];
    if (trace.Category(SliceId(i)) == trace::kStepCategory ||
        name.starts_with(kProfilerStep)) {
      profiler.push_back(SliceId(i));
    } else if (IsEngineStep(name)) {
      engine.push_back(SliceId(i));
    }
  }
  const auto by_start = [&](SliceId a, SliceId b) {
    return std::pair(trace.Start(a), trace.Uid(a)) <
           std::pair(trace.Start(b), trace.Uid(b));
  };
  std::sort(engine.begin(), engine.end(), by_start);
  std::sort(profiler.begin(), profiler.end(), by_start);
  for (const SliceId s : engine) {
    if (!trace.Name(s).starts_with("execute_")) continue;
    if (steps.requests_.empty() ||
        trace.Start(s) >= trace.End(steps.requests_.back()))
      steps.requests_.push_back(s);
  }
  const std::vector<SliceId>& found = profiler.empty() ? engine : profiler;
  for (const SliceId s : found) {
    // The same step marked twice (both engine forms, several threads).
    if (!steps.steps_.empty() &&
        trace.Start(s) < steps.steps_.back().host.end_ns)
      continue;
    Step step;
    step.slice = s;
    step.host = {trace.Start(s), trace.End(s)};
    step.number = static_cast<int64_t>(steps.steps_.size());
    const trace::OpArgs* args = trace.Op(s);
    if (trace.Category(s) == trace::kStepCategory) {
      if (args != nullptr && args->sequence != trace::kNoInt)
        step.number = args->sequence;
    } else if (&found == &profiler) {
      step.number = ParseInt(trace.Name(s).substr(kProfilerStep.size()))
                        .value_or(step.number);
    }
    steps.steps_.push_back(step);
  }

  steps.of_device_.assign(trace.device.size(), kOutside);
  if (steps.steps_.empty()) return steps;
  // Device ranges of the steps, for work without a launch.
  absl::flat_hash_map<StringId, uint32_t> by_name;
  for (uint32_t i = 0; i < steps.steps_.size(); ++i)
    by_name.try_emplace(slices.name[steps.steps_[i].slice.value], i);
  std::vector<std::pair<Interval, uint32_t>> on_device;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (slices.kind[i] != trace::Kind::kGpuAnnotation) continue;
    const auto it = by_name.find(slices.name[i]);
    if (it != by_name.end()) {
      on_device.push_back(
          {{slices.start_ns[i], slices.start_ns[i] + slices.dur_ns[i]},
           it->second});
    }
  }
  std::sort(on_device.begin(), on_device.end(),
            [](const auto& a, const auto& b) {
              return a.first.start_ns < b.first.start_ns;
            });
  for (const SliceId s : trace.device_slices()) {
    uint32_t& step = steps.of_device_[slices.detail[s.value]];
    const NodeId launch = tree.launch(s);
    if (launch.valid()) {
      step = steps.StepAt(trace.Start(tree.slice(launch)));
      continue;
    }
    const auto after =
        std::upper_bound(on_device.begin(), on_device.end(), trace.Start(s),
                         [](int64_t time, const auto& range) {
                           return time < range.first.start_ns;
                         });
    if (after == on_device.begin()) continue;
    const auto& [interval, index] = *std::prev(after);
    if (trace.Start(s) < interval.end_ns) step = index;
  }
  return steps;
}

StringId Steps::RequestsAt(NodeId node) const {
  const Trace& trace = tree_->trace();
  const int64_t start = trace.Start(tree_->slice(node));
  const auto after = std::upper_bound(
      requests_.begin(), requests_.end(), start,
      [&](int64_t ns, SliceId s) { return ns < trace.Start(s); });
  if (after == requests_.begin()) return {};
  const SliceId step = *std::prev(after);
  return start < trace.End(step) ? trace.slices.name[step.value] : StringId();
}

uint32_t Steps::StepAt(int64_t time_ns) const {
  const auto after = std::upper_bound(
      steps_.begin(), steps_.end(), time_ns,
      [](int64_t time, const Step& step) { return time < step.host.start_ns; });
  if (after == steps_.begin()) return kOutside;
  const auto step = std::prev(after);
  return time_ns < step->host.end_ns
             ? static_cast<uint32_t>(step - steps_.begin())
             : kOutside;
}

}  // namespace lamina::tree
