// SPDX-License-Identifier: Apache-2.0
//
// Device time by range of the user, launch delay by op, and steps that drift or
// stand out. In one file because each is a table or two of its own.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/common/stats.h"
#include "analysis/host/launch_annotations.h"
#include "analysis/host/steady.h"
#include "analysis/host/tables.h"

namespace lamina::analysis::host {
namespace {

Schema AnnotationSchema() {
  return {"annotation_time",
          "Device work by the ranges of the user in which it was launched.",
          {{"annotation", ColumnType::kText, "Name; \"(outside)\": none."},
           {"events", ColumnType::kInt,
            "Device events in it, inner ranges "
            "left out."},
           {"exclusive_us", ColumnType::kTime,
            "Union of their times; inner ranges left out."},
           {"inclusive_us", ColumnType::kTime,
            "Union of the times of all work launched in it."}}};
}

Schema DelaySchema() {
  return {"op_launch_delay",
          "From the start of an op to the start of the work that it launched.",
          {{"op", ColumnType::kText, "Op."},
           {"events", ColumnType::kInt, "Device events."},
           {"mean_us", ColumnType::kTime, "Mean."},
           {"p50_us", ColumnType::kTime, "Median."},
           {"p99_us", ColumnType::kTime, "99th percentile, nearest rank."},
           {"max_us", ColumnType::kTime, "Longest."}}};
}

Schema DriftSchema() {
  return {"step_drift",
          "Whether steps get slower or faster.",
          {{"steps", ColumnType::kInt, "Steps without the warm-up."},
           {"warmup", ColumnType::kInt,
            "Leading steps above 1.5 times the median of the later half."},
           {"median_us", ColumnType::kTime, "Start to start."},
           {"mad_us", ColumnType::kTime, "Median distance from the median."},
           {"slope_per_step_us", ColumnType::kTime,
            "Median slope over all pairs (Theil-Sen)."},
           {"drift_percent", ColumnType::kReal,
            "Slope times steps, of the median.", Shown::kPercent},
           {"same_sign_percent", ColumnType::kReal,
            "Pairs of steps whose difference has the sign of the slope.",
            Shown::kPercent},
           {"verdict", ColumnType::kText,
            "slower, faster, steady or too_few (below 8 steps)."}}};
}

Schema SlowSchema() {
  return {"slow_steps",
          "Steps above the median by 5 times the median distance and 2 %, and "
          "the cause of idle time that grew most in them.",
          {{"step", ColumnType::kInt, "Step."},
           {"period_us", ColumnType::kTime, "Start to start."},
           {"excess_us", ColumnType::kTime, "Above the median."},
           {"cause", ColumnType::kText,
            "Cause of idle time that grew most, with the activity; busy: the "
            "device worked longer."},
           {"delta_us", ColumnType::kTime, "How much it grew."},
           {"class", ColumnType::kText,
            "Class of the critical path (lamina path) that grew most: "
            "host, device, comm, copy or wait."},
           {"name", ColumnType::kText,
            "What grew most of the cause: op, call, frame or range of the "
            "host; of busy the kernel or copy."}}};
}

std::optional<std::string_view> Known(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// What caused the idle time of each step, and which kernels ran in it.
class StepCauses {
 public:
  StepCauses(const HostModel& model, const Idle& idle, size_t warm)
      : steps_(model.context().steps.steps().size()),
        causes_(warm, steps_),
        kernels_(warm, steps_) {
    const tree::Steps& steps = model.context().steps;
    const Trace& trace = model.trace();
    for (const Activity& activity : idle.activities)
      what_.push_back("host_bound/" + activity.what);
    // By numbers first: there are far more parts and kernels than names.
    absl::flat_hash_map<std::tuple<Cause, uint32_t, uint32_t>, int64_t> parts;
    for (const Part& part : idle.parts) {
      const uint32_t step = steps.StepOf(idle.gaps[part.gap].next);
      if (step != tree::Steps::kOutside)
        parts[{part.cause, part.activity, step}] += part.length_ns;
    }
    for (const auto& [key, ns] : parts) {
      const auto& [cause, activity, step] = key;
      if (activity == kNone) {
        causes_.Add(CauseName(cause), step, ns);
        continue;
      }
      causes_.Add(what_[activity], step, ns);
      details_.try_emplace(what_[activity], warm, steps_)
          .first->second.Add(idle.activities[activity].detail, step, ns);
    }
    absl::flat_hash_map<std::pair<StringId, uint32_t>, int64_t> kernels;
    for (const SliceId s : trace.device_slices()) {
      const uint32_t step = steps.StepOf(s);
      if (step != tree::Steps::kOutside)
        kernels[{trace.slices.name[s.value], step}] += trace.Duration(s);
    }
    for (const auto& [key, ns] : kernels)
      kernels_.Add(trace.Text(key.first), key.second, ns);
  }

  struct Found {
    std::string_view cause;
    std::string_view name;  // may be empty
    int64_t delta_ns = 0;
  };
  // Of a step that takes so much longer than the others.
  Found Of(uint32_t step, int64_t excess_ns) const {
    const Growth::Grown grown = causes_.Most(step);
    if (2 * grown.delta_ns < excess_ns) {
      return {"busy", kernels_.Most(step).name, excess_ns - grown.delta_ns};
    }
    const auto details = details_.find(grown.name);
    return {grown.name,
            details == details_.end() ? std::string_view()
                                      : details->second.Most(step).name,
            grown.delta_ns};
  }

 private:
  size_t steps_;
  std::vector<std::string> what_;  // by activity
  Growth causes_, kernels_;
  std::map<std::string_view, Growth> details_;  // by what_
};

}  // namespace

void Growth::Add(std::string_view name, uint32_t step, int64_t ns) {
  if (step >= warm_) times_[name][step] += ns;
}

Growth::Grown Growth::Most(uint32_t step) const {
  Grown most;
  for (const auto& [name, by_step] : times_) {
    const auto own = by_step.find(step);
    if (own == by_step.end() || own->second <= most.delta_ns) continue;
    // Most steps may have nothing of it.
    const auto [usual, is_new] = usual_.try_emplace(name, 0);
    if (is_new) {
      std::vector<int64_t> values;
      for (const auto& [of, ns] : by_step) values.push_back(ns);
      std::sort(values.begin(), values.end());
      const size_t count = steps_ - warm_;
      const size_t none = count - values.size();
      const size_t middle = (count - 1) / 2;
      if (middle >= none) usual->second = values[middle - none];
    }
    const int64_t delta = own->second - usual->second;
    if (delta > most.delta_ns) most = {name, delta};
  }
  return most;
}

ResultSet RangeTables(const HostModel& model) {
  const Trace& trace = model.trace();
  const LaunchAnnotations annotations(model);
  // Work per range, innermost; device slices are by start.
  std::map<std::string_view, IntervalSet> own, all;
  std::map<std::string_view, int64_t> events;
  std::vector<std::string_view> seen;
  constexpr size_t kDeepest = 64;
  for (const SliceId s : trace.device_slices()) {
    if (model.call(s) == kNone) continue;
    const Interval time{trace.Start(s), trace.End(s)};
    const std::vector<SliceId> ranges = annotations.AllOf(s);
    const std::string_view inner =
        ranges.empty() ? std::string_view("(outside)") : trace.Name(ranges[0]);
    own[inner].AppendSorted(time);
    ++events[inner];
    if (ranges.empty()) all[inner].AppendSorted(time);
    seen.clear();
    for (const SliceId range : ranges) {
      const std::string_view name = trace.Name(range);
      if (seen.size() == kDeepest) break;
      // A range within one of its name counts once.
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      seen.push_back(name);
      all[name].AppendSorted(time);
    }
  }
  std::vector<std::pair<std::string_view, int64_t>> order;
  for (const auto& [name, set] : all) order.emplace_back(name, set.length_ns());
  std::stable_sort(
      order.begin(), order.end(),
      [](const auto& a, const auto& b) { return a.second > b.second; });
  Table ranges(AnnotationSchema());
  for (const auto& [name, ns] : order) {
    const auto it = own.find(name);
    ranges.Add(name, events[name],
               it == own.end() ? int64_t{0} : it->second.length_ns(), ns);
  }
  std::map<StringId, std::vector<int64_t>> delays;
  const auto& tree = model.context().tree;
  for (const SliceId s : trace.device_slices()) {
    if (model.call(s) == kNone) continue;
    const NodeId op = tree.EnclosingOp(tree.launch(s));
    if (!op.valid() || trace.captured.Has(tree.slice(op))) continue;
    delays[trace.slices.name[tree.slice(op).value]].push_back(
        std::max<int64_t>(0, trace.Start(s) - trace.Start(tree.slice(op))));
  }
  std::vector<std::pair<StringId, Stats>> rows;
  for (auto& [name, values] : delays)
    rows.emplace_back(name, Summarize(values));
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.sum > b.second.sum;
  });
  Table ops(DelaySchema());
  for (const auto& [name, stats] : rows) {
    ops.Add(trace.Text(name), stats.count, RoundNs(stats.mean),
            RoundNs(stats.median), stats.p99, stats.max);
  }
  ResultSet result;
  result.tables.push_back(std::move(ranges));
  result.tables.push_back(std::move(ops));
  return result;
}

ResultSet StepTables(const HostModel& model, const Idle& idle,
                     const ClassesOfSteps& classes_of) {
  // Slopes of all pairs; of many steps an even choice of them.
  constexpr size_t kMostSteps = 2000;
  constexpr size_t kLeastSteps = 8;
  const auto& steps = model.context().steps.steps();
  ResultSet result;
  Table drift(DriftSchema());
  Table slow(SlowSchema());
  const std::vector<StepFlags> flags = FlagSteps(model);
  if (!flags.empty()) {
    const StepSpread spread = SpreadOf(flags);
    const std::vector<int64_t>& kept = spread.periods;
    const int64_t median = spread.median_ns;
    const size_t stride = (kept.size() + kMostSteps - 1) / kMostSteps;
    std::vector<int64_t> slopes;
    for (size_t i = 0; i < kept.size(); i += stride) {
      for (size_t j = i + stride; j < kept.size(); j += stride)
        slopes.push_back((kept[j] - kept[i]) / static_cast<int64_t>(j - i));
    }
    const int64_t slope = Pick(slopes, 0.5);
    const auto same = static_cast<int64_t>(
        std::count_if(slopes.begin(), slopes.end(), [&](int64_t s) {
          return slope > 0 ? s > 0 : slope < 0 ? s < 0 : s == 0;
        }));
    const double percent =
        PercentOf(slope * static_cast<int64_t>(kept.size()), median);
    const double sign = PercentOf(same, static_cast<int64_t>(slopes.size()));
    const bool drifts = std::abs(percent) > 3 && sign > 75;
    drift.Add(kept.size(), spread.warmup, median, spread.mad_ns, slope, percent,
              sign,
              kept.size() < kLeastSteps ? "too_few"
              : !drifts                 ? "steady"
              : slope > 0               ? "slower"
                                        : "faster");
    constexpr size_t kMostSlow = 100;
    std::vector<uint32_t> outliers;
    for (uint32_t i = 0; i < flags.size() && outliers.size() < kMostSlow; ++i) {
      if (flags[i].outlier) outliers.push_back(i);
    }
    if (!outliers.empty()) {
      const size_t warm = spread.warmup;
      const StepCauses causes(model, idle, warm);
      Growth classes(warm, steps.size());
      if (classes_of) classes = classes_of(warm);
      for (const uint32_t i : outliers) {
        const int64_t period = flags[i].period_ns;
        const int64_t excess = period - median;
        const StepCauses::Found found = causes.Of(i, excess);
        const auto grown = classes.Most(i);
        slow.Add(steps[i].number, period, excess, found.cause, found.delta_ns,
                 Known(grown.name), Known(found.name));
      }
    }
  }
  result.tables.push_back(std::move(drift));
  result.tables.push_back(std::move(slow));
  return result;
}

std::vector<Schema> RangeSchemas() {
  return {AnnotationSchema(), DelaySchema(), DriftSchema(), SlowSchema()};
}

}  // namespace lamina::analysis::host
