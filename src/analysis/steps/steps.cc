// SPDX-License-Identifier: Apache-2.0
//
// One row per step (ProfilerStep#N, or the step ranges of serving engines):
// what its device work did, and statistics over the steps.
#include <algorithm>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/common/stats.h"
#include "analysis/common/timeline.h"

namespace lamina::analysis::steps {
namespace {

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
           {"idle_us", ColumnType::kTime, "device_us - busy_us."},
           {"kernel_time_us", ColumnType::kTime, "Sum of durations."},
           {"comm_us", ColumnType::kTime, "Union of communication."},
           {"exposed_comm_us", ColumnType::kTime,
            "Communication outside computation."},
           {"exposed_memcpy_us", ColumnType::kTime,
            "Copies outside computation and communication.", Shown::kHidden},
           {"kernels", ColumnType::kInt, "Device slices."}}};
}

Schema SummarySchema() {
  return {"step_summary",
          "Statistics over the steps.",
          {{"metric", ColumnType::kText, "Column of the table steps."},
           {"steps", ColumnType::kInt, "Steps with device work."},
           {"mean_us", ColumnType::kTime, "Mean."},
           {"p50_us", ColumnType::kTime, "Median."},
           {"p99_us", ColumnType::kTime, "99th percentile, nearest rank."},
           {"min_us", ColumnType::kTime, "Smallest."},
           {"max_us", ColumnType::kTime, "Largest."}}};
}

Result<ResultSet> Run(const Context& context) {
  const Trace& trace = context.trace;
  const auto& steps = context.steps.steps();
  Table table(StepsSchema());
  Table summary(SummarySchema());
  std::vector<std::vector<SliceId>> work(steps.size() + 1);
  if (!steps.empty()) {
    for (const SliceId s : trace.device_slices()) {
      const uint32_t step = context.steps.StepOf(s);
      work[step == tree::Steps::kOutside ? steps.size() : step].push_back(s);
    }
  }
  const auto bucket = [&](SliceId s) { return context.device.bucket(s); };
  struct Metric {
    const char* name;
    std::vector<int64_t> values;
  };
  std::vector<Metric> metrics = {{"host_us", {}},       {"device_us", {}},
                                 {"busy_us", {}},       {"idle_us", {}},
                                 {"comm_us", {}},       {"exposed_comm_us", {}},
                                 {"kernel_time_us", {}}};
  for (size_t i = 0; i <= steps.size() && !steps.empty(); ++i) {
    const Timeline t = MakeTimeline(trace, work[i], bucket);
    if (i == steps.size()) {
      if (work[i].empty()) break;
      table.Add(std::nullopt, "(outside)", std::nullopt, std::nullopt,
                t.total_ns, t.busy_ns, t.idle_ns, t.kernel_time_ns,
                t.communication.length_ns(), t.exposed_communication_ns,
                t.exposed_copies_ns, t.slices);
      break;
    }
    const tree::Step& step = steps[i];
    table.Add(step.number, trace.Name(step.slice),
              step.host.start_ns - trace.first_ns, step.host.length_ns(),
              t.total_ns, t.busy_ns, t.idle_ns, t.kernel_time_ns,
              t.communication.length_ns(), t.exposed_communication_ns,
              t.exposed_copies_ns, t.slices);
    if (t.slices == 0) continue;
    const int64_t values[] = {step.host.length_ns(),
                              t.total_ns,
                              t.busy_ns,
                              t.idle_ns,
                              t.communication.length_ns(),
                              t.exposed_communication_ns,
                              t.kernel_time_ns};
    for (size_t m = 0; m < metrics.size(); ++m)
      metrics[m].values.push_back(values[m]);
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
