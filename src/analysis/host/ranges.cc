// SPDX-License-Identifier: Apache-2.0
//
// Device time by range of the user, launch delay by op, and steps that drift or
// stand out.
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/common/stats.h"
#include "analysis/host/launch_annotations.h"
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
           {"slope_us_per_step", ColumnType::kTime,
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
           {"delta_us", ColumnType::kTime, "How much it grew."}}};
}

int64_t Median(std::vector<int64_t> values) { return Pick(values, 0.5); }

}  // namespace

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
    SliceId range = annotations.Of(s);
    const std::string_view inner =
        range.valid() ? trace.Name(range) : std::string_view("(outside)");
    own[inner].AppendSorted(time);
    ++events[inner];
    seen.clear();
    do {
      const std::string_view name = range.valid() ? trace.Name(range) : inner;
      // A range within one of its name counts once.
      if (std::find(seen.begin(), seen.end(), name) == seen.end()) {
        seen.push_back(name);
        all[name].AppendSorted(time);
      }
      if (range.valid()) range = annotations.Outer(range);
    } while (range.valid() && seen.size() < kDeepest);
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

ResultSet StepTables(const HostModel& model, const Idle& idle) {
  // Slopes of all pairs; of many steps an even choice of them.
  constexpr size_t kMostSteps = 2000;
  constexpr size_t kLeastSteps = 8;
  const auto& steps = model.context().steps.steps();
  ResultSet result;
  Table drift(DriftSchema());
  Table slow(SlowSchema());
  // Steps of several ranks or nested ones are no row of steps.
  std::vector<int64_t> periods;
  for (size_t i = 0; i + 1 < steps.size(); ++i)
    periods.push_back(std::max<int64_t>(
        0, steps[i + 1].host.start_ns - steps[i].host.start_ns));
  if (!steps.empty()) periods.push_back(steps.back().host.length_ns());
  if (!periods.empty()) {
    const int64_t later =
        Median({periods.begin() + static_cast<ptrdiff_t>(periods.size() / 2),
                periods.end()});
    size_t warm = 0;
    while (warm + 1 < periods.size() && 2 * periods[warm] > 3 * later) ++warm;
    const std::vector<int64_t> kept(
        periods.begin() + static_cast<ptrdiff_t>(warm), periods.end());
    const int64_t median = Median(kept);
    std::vector<int64_t> distances;
    for (const int64_t p : kept) distances.push_back(std::abs(p - median));
    const int64_t mad = Median(distances);
    const size_t stride = (kept.size() + kMostSteps - 1) / kMostSteps;
    std::vector<int64_t> slopes;
    for (size_t i = 0; i < kept.size(); i += stride) {
      for (size_t j = i + stride; j < kept.size(); j += stride)
        slopes.push_back((kept[j] - kept[i]) / static_cast<int64_t>(j - i));
    }
    const int64_t slope = Median(slopes);
    const auto same = static_cast<int64_t>(
        std::count_if(slopes.begin(), slopes.end(), [&](int64_t s) {
          return slope > 0 ? s > 0 : slope < 0 ? s < 0 : s == 0;
        }));
    const double percent =
        PercentOf(slope * static_cast<int64_t>(kept.size()), median);
    const double sign = PercentOf(same, static_cast<int64_t>(slopes.size()));
    const bool drifts = std::abs(percent) > 3 && sign > 75;
    drift.Add(kept.size(), warm, median, mad, slope, percent, sign,
              kept.size() < kLeastSteps ? "too_few"
              : !drifts                 ? "steady"
              : slope > 0               ? "slower"
                                        : "faster");
    // Idle time by cause and activity of each step.
    std::map<std::string, std::map<uint32_t, int64_t>> causes;
    for (const Part& part : idle.parts) {
      const uint32_t step =
          model.context().steps.StepOf(idle.gaps[part.gap].next);
      if (step == tree::Steps::kOutside) continue;
      std::string what(CauseName(part.cause));
      if (part.activity != kNone)
        what += "/" + idle.activities[part.activity].what;
      causes[what][step] += part.length_ns;
    }
    for (size_t i = warm; i < periods.size(); ++i) {
      const int64_t excess = periods[i] - median;
      if (excess <= 5 * mad || 50 * excess <= median) continue;
      std::string cause = "busy";
      int64_t most = 0;
      for (const auto& [what, by_step] : causes) {
        std::vector<int64_t> usual(steps.size() - warm, 0);
        for (const auto& [step, ns] : by_step) {
          if (step >= warm) usual[step - warm] = ns;
        }
        const auto own = by_step.find(static_cast<uint32_t>(i));
        const int64_t delta =
            (own == by_step.end() ? 0 : own->second) - Median(usual);
        if (delta > most) {
          most = delta;
          cause = what;
        }
      }
      if (2 * most < excess) {
        cause = "busy";
        most = excess - most;
      }
      slow.Add(steps[i].number, periods[i], excess, cause, most);
      constexpr size_t kMostSlow = 100;
      if (slow.rows() >= kMostSlow) break;
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
