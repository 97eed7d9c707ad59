// SPDX-License-Identifier: Apache-2.0
//
// One row per step (ProfilerStep#N, or the step ranges of serving engines) and
// device: what its device work did, and statistics over the steps. Launches run
// ahead of the device, so the device windows of neighbouring steps overlap: the
// period, not the window, says how long a step takes.
#include <algorithm>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/common/stats.h"
#include "analysis/common/step_rows.h"

namespace lamina::analysis::steps {
namespace {

constexpr std::string_view kPeriod = "period_us";

Schema StepsSchema() {
  return {"steps",
          "Device work by the step that launched it.",
          {{"step", ColumnType::kInt,
            "Number of the step; empty for work of no step."},
           {"name", ColumnType::kText, "Name of the range."},
           {"start_us", ColumnType::kTime,
            "Begin of the host range, from the first event."},
           {"host_us", ColumnType::kTime, "Length of the host range."},
           {"device_us", ColumnType::kTime,
            "First start to last end of its device work."},
           {"busy_us", ColumnType::kTime, "Union of its device work."},
           {"idle_us", ColumnType::kTime,
            "Nothing of any step ran on the device, from its first work to "
            "that of the next step; with the row (outside) the rows of a "
            "device add up to its idle time."},
           {"kernel_time_us", ColumnType::kTime, "Sum of durations."},
           {"comm_us", ColumnType::kTime, "Union of communication."},
           {"exposed_comm_us", ColumnType::kTime,
            "Communication outside computation."},
           {"exposed_memcpy_us", ColumnType::kTime,
            "Copies outside computation and communication.", Shown::kHidden},
           {"kernels", ColumnType::kInt, "Device slices."},
           {"period_us", ColumnType::kTime,
            "Begin of the host range to that of the next step; of the last "
            "its length."},
           {"overlap_us", ColumnType::kTime,
            "End of its device work after the first work of the next step on "
            "the device: the part of device_us that two steps share."},
           {"device", ColumnType::kText,
            "process:device; a row for each that worked for the step."},
           {"verdict", ColumnType::kText,
            "What bounds the step, by the chain of last arrivals to the end "
            "of its work: host_bound, device_bound, comm_bound, copy_bound, "
            "unexplained_wait, or mixed; as in verdicts of lamina path."},
           {"strength_percent", ColumnType::kReal,
            "Share of the largest class of that chain.", Shown::kPercent}}};
}

Schema SummarySchema() {
  return {"step_summary",
          "Statistics over the steps.",
          {{"metric", ColumnType::kText, "Column of the table steps."},
           {"steps", ColumnType::kInt,
            "Steps with device work, once for each device; of period_us those "
            "that another follows."},
           {"mean_us", ColumnType::kTime, "Mean."},
           {"p50_us", ColumnType::kTime, "Median."},
           {"p99_us", ColumnType::kTime, "99th percentile, nearest rank."},
           {"min_us", ColumnType::kTime, "Smallest."},
           {"max_us", ColumnType::kTime, "Largest."}}};
}

// Whether the next step of the same thread says how long this one took.
bool HasNext(const Context& context, size_t i) {
  const auto& steps = context.steps.steps();
  const Trace& trace = context.trace;
  return i + 1 < steps.size() &&
         trace.slices.track[steps[i].slice.value] ==
             trace.slices.track[steps[i + 1].slice.value] &&
         steps[i + 1].host.start_ns >= steps[i].host.start_ns;
}

// Begin to begin of the next step of the same thread.
int64_t PeriodOf(const Context& context, size_t i) {
  const auto& steps = context.steps.steps();
  return HasNext(context, i)
             ? steps[i + 1].host.start_ns - steps[i].host.start_ns
             : steps[i].host.length_ns();
}

Result<ResultSet> Run(const Context& context) {
  const Trace& trace = context.trace;
  const auto& steps = context.steps.steps();
  Table table(StepsSchema());
  Table summary(SummarySchema());
  struct Metric {
    std::string_view name;
    std::vector<int64_t> values;
  };
  std::vector<Metric> metrics = {
      {"host_us", {}}, {"device_us", {}},  {"busy_us", {}},
      {"idle_us", {}}, {"comm_us", {}},    {"exposed_comm_us", {}},
      {kPeriod, {}},   {"overlap_us", {}}, {"kernel_time_us", {}}};
  const StepRows step_rows = StepRows::Build(context);
  for (const StepRow& row : step_rows.rows) {
    const Timeline& t = row.timeline;
    const Value device =
        row.device ? Value(step_rows.devices[*row.device].name) : Value();
    if (row.step == steps.size()) {
      table.Add(std::nullopt, "(outside)", std::nullopt, std::nullopt,
                t.total_ns, t.busy_ns, row.idle_ns, t.kernel_time_ns,
                t.communication.length_ns(), t.exposed_communication_ns,
                t.exposed_copies_ns, t.slices, std::nullopt, std::nullopt,
                device, std::nullopt, std::nullopt);
      continue;
    }
    const tree::Step& step = steps[row.step];
    const int64_t period = PeriodOf(context, row.step);
    table.Add(step.number, trace.Name(step.slice),
              step.host.start_ns - trace.first_ns, step.host.length_ns(),
              t.total_ns, t.busy_ns, row.idle_ns, t.kernel_time_ns,
              t.communication.length_ns(), t.exposed_communication_ns,
              t.exposed_copies_ns, t.slices, period, row.overlap_ns, device,
              std::nullopt, std::nullopt);
    if (!row.device) continue;
    const int64_t values[] = {step.host.length_ns(),
                              t.total_ns,
                              t.busy_ns,
                              row.idle_ns,
                              t.communication.length_ns(),
                              t.exposed_communication_ns,
                              period,
                              row.overlap_ns,
                              t.kernel_time_ns};
    // The length of a step that no other follows is no period: the host may
    // have run ahead of the device.
    for (size_t m = 0; m < metrics.size(); ++m) {
      if (metrics[m].name != kPeriod || HasNext(context, row.step))
        metrics[m].values.push_back(values[m]);
    }
  }
  for (Metric& metric : metrics) {
    if (metric.values.empty()) continue;
    const Stats stats = Summarize(metric.values);
    summary.Add(metric.name, stats.count, RoundNs(stats.mean),
                RoundNs(stats.median), stats.p99, stats.min, stats.max);
  }
  ResultSet result;
  result.tables.push_back(std::move(table));
  result.tables.push_back(std::move(summary));
  return result;
}

}  // namespace

AnalysisInfo Info() {
  return {"steps", "Device work by step, and statistics over steps.",
          [] {
            return std::vector<Schema>{StepsSchema(), SummarySchema()};
          },
          &Run};
}

}  // namespace lamina::analysis::steps
