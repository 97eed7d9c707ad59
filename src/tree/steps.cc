// SPDX-License-Identifier: Apache-2.0
#include "tree/steps.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/decimal.h"
#include "trace/order.h"

namespace lamina::tree {
namespace {

constexpr std::string_view kProfilerStep = "ProfilerStep#";

// Whether the ranges are of several ranks in one file: processes that count the
// same steps, most names in several of them.
bool AreRanks(const Trace& trace, const std::vector<SliceId>& found) {
  absl::flat_hash_map<StringId, StringId> first;  // process by name
  absl::flat_hash_set<StringId> pids, shared;
  for (const SliceId s : found) {
    const StringId pid = trace.TrackOf(s).pid;
    pids.insert(pid);
    const auto [it, is_new] =
        first.try_emplace(trace.slices.name[s.value], pid);
    if (!is_new && it->second != pid) shared.insert(it->first);
  }
  return pids.size() > 1 && 2 * shared.size() >= first.size();
}

// The steps from `begin` on that are of the process of the first of them.
std::span<const Step> PartFrom(const Trace& trace,
                               const std::vector<Step>& steps, size_t begin) {
  const auto pid = [&](size_t i) { return trace.TrackOf(steps[i].slice).pid; };
  size_t end = begin;
  if (pid(begin) == pid(steps.size() - 1)) {
    end = steps.size();
  } else {
    while (end < steps.size() && pid(end) == pid(begin)) ++end;
  }
  return {steps.data() + begin, end - begin};
}

// Whether a range that begins in a step marks that step once more: both forms
// of an engine, several threads. A step that only begins a little early, by the
// error of a clock or by rounding, is one of its own, and no step is dropped.
bool IsSameAgain(const Interval& step, const Interval& next) {
  if (next.start_ns == step.start_ns || next.end_ns <= step.end_ns) return true;
  const int64_t overlap = step.end_ns - next.start_ns;
  return 2 * overlap > std::min(step.length_ns(), next.length_ns());
}

// The step of a list by start that holds a time; null if none.
const Step* Holding(std::span<const Step> part, int64_t time_ns) {
  const auto after = std::upper_bound(
      part.begin(), part.end(), time_ns,
      [](int64_t time, const Step& step) { return time < step.host.start_ns; });
  if (after == part.begin()) return nullptr;
  const Step& step = *std::prev(after);
  return time_ns < step.host.end_ns ? &step : nullptr;
}

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

Steps Steps::Build(const Tree& tree, const StepRanges& named) {
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
    const auto host = [&](SliceId range) {
      return Interval{trace.Start(range), trace.End(range)};
    };
    if (steps.requests_.empty() ||
        trace.Start(s) >= trace.End(steps.requests_.back()) ||
        !IsSameAgain(host(steps.requests_.back()), host(s)))
      steps.requests_.push_back(s);
  }
  std::vector<SliceId> by_name;
  absl::flat_hash_map<uint32_t, int64_t> number_of;
  if (named.asked || (profiler.empty() && engine.empty())) {
    for (const auto& [slice, number] : named.ranges) {
      by_name.push_back(slice);
      number_of[slice.value] = number;
    }
    std::sort(by_name.begin(), by_name.end(), by_start);
  }
  std::vector<SliceId>& found = named.asked || !by_name.empty() ? by_name
                                : profiler.empty()              ? engine
                                                                : profiler;
  steps.basis_ = &found == &by_name    ? named.basis
                 : &found == &profiler ? "marks of the profiler"
                                       : "ranges of a serving engine";
  // Ranks mark the same steps at the same time, each its own.
  const bool ranks = AreRanks(trace, found);
  if (ranks) {
    std::stable_sort(found.begin(), found.end(), [&](SliceId a, SliceId b) {
      return ProcessOf(trace, a) < ProcessOf(trace, b);
    });
  }
  const auto pid_of = [&](SliceId s) { return trace.TrackOf(s).pid; };
  std::vector<std::pair<StringId, size_t>> parts;  // process, its first step
  for (const SliceId s : found) {
    if (parts.empty() || (ranks && parts.back().first != pid_of(s)))
      parts.emplace_back(pid_of(s), steps.steps_.size());
    const size_t first = parts.back().second;
    if (steps.steps_.size() > first) {
      Interval& before = steps.steps_.back().host;
      if (trace.Start(s) < before.end_ns) {
        if (IsSameAgain(before, {trace.Start(s), trace.End(s)})) continue;
        before.end_ns = trace.Start(s);
      }
    }
    Step step;
    step.slice = s;
    step.host = {trace.Start(s), trace.End(s)};
    step.number = static_cast<int64_t>(steps.steps_.size() - first);
    const trace::OpArgs* args = trace.Op(s);
    if (const auto own = number_of.find(s.value); own != number_of.end()) {
      step.number = own->second;
    } else if (trace.Category(s) == trace::kStepCategory) {
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
  absl::flat_hash_map<StringId, uint32_t> with_name;
  for (uint32_t i = 0; i < steps.steps_.size(); ++i)
    with_name.try_emplace(slices.name[steps.steps_[i].slice.value], i);
  std::vector<std::pair<Interval, uint32_t>> on_device;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (slices.kind[i] != trace::Kind::kGpuAnnotation) continue;
    const auto it = with_name.find(slices.name[i]);
    if (it != with_name.end()) {
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
      const SliceId call = tree.slice(launch);
      std::span<const Step> part = steps.steps_;
      if (ranks) {
        const auto own = std::find_if(
            parts.begin(), parts.end(),
            [&](const auto& p) { return p.first == pid_of(call); });
        if (own == parts.end()) continue;
        part = PartFrom(trace, steps.steps_, own->second);
      }
      const Step* const holding = Holding(part, trace.Start(call));
      if (holding != nullptr)
        step = static_cast<uint32_t>(holding - steps.steps_.data());
      continue;
    }
    // The ranges of ranks have the same names; nothing tells whose they are.
    if (ranks) continue;
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
  // Of several ranks the first that has a step there counts.
  for (size_t begin = 0; begin < steps_.size();) {
    const auto part = PartFrom(tree_->trace(), steps_, begin);
    if (const Step* const step = Holding(part, time_ns))
      return static_cast<uint32_t>(step - steps_.data());
    begin += part.size();
  }
  return kOutside;
}

}  // namespace lamina::tree
