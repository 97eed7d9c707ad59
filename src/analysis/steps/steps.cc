// SPDX-License-Identifier: Apache-2.0
//
// One row per step (ProfilerStep#N, or the step ranges of serving engines) and
// device: what its device work did, and statistics over the steps. Launches run
// ahead of the device, so the device windows of neighbouring steps overlap: the
// period, not the window, says how long a step takes.
#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/common/stats.h"
#include "analysis/common/step_rows.h"
#include "analysis/host/steady.h"
#include "analysis/path/tables.h"
#include "table/row_columns.h"

namespace lamina::analysis::steps {
namespace {

constexpr std::string_view kPeriod = "period_us";

// A row of steps; times in nanoseconds.
struct Row {
  std::optional<int64_t> step;
  std::string_view name;
  std::optional<int64_t> start, host;
  int64_t device_time, busy, idle, kernel_time, comm, exposed_comm,
      exposed_memcpy;
  size_t kernels;
  std::optional<int64_t> period, overlap;
  std::optional<std::string_view> device;
  std::optional<std::string_view> verdict = std::nullopt;
  std::optional<double> strength = std::nullopt;
  std::optional<std::string_view> flag = std::nullopt;
  std::optional<int64_t> path_host = std::nullopt, path_device = std::nullopt,
                         path_comm = std::nullopt, path_copy = std::nullopt,
                         path_wait = std::nullopt;
};

const RowColumns<Row>& Columns() {
  static const RowColumns<Row> columns{
      "steps",
      "Device work by the step that launched it.",
      {{"step", ColumnType::kInt,
        "Number of the step; empty for work of no step.", &Row::step},
       {"name", ColumnType::kText, "Name of the range.", &Row::name},
       {"start_us", ColumnType::kTime,
        "Begin of the host range, from the first event.", &Row::start},
       {"host_us", ColumnType::kTime, "Length of the host range.", &Row::host},
       {"device_us", ColumnType::kTime,
        "First start to last end of its device work.", &Row::device_time},
       {"busy_us", ColumnType::kTime, "Union of its device work.", &Row::busy},
       {"idle_us", ColumnType::kTime,
        "Nothing of any step ran on the device, from its first work to "
        "that of the next step; with the row (outside) the rows of a "
        "device add up to its idle time.",
        &Row::idle},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations.",
        &Row::kernel_time},
       {"comm_us", ColumnType::kTime, "Union of communication.", &Row::comm},
       {"exposed_comm_us", ColumnType::kTime,
        "Communication outside computation.", &Row::exposed_comm},
       {"exposed_memcpy_us", ColumnType::kTime,
        "Copies outside computation and communication.", &Row::exposed_memcpy,
        Shown::kHidden},
       {"kernels", ColumnType::kInt, "Device slices.", &Row::kernels},
       {"period_us", ColumnType::kTime,
        "Begin of the host range to that of the next step; of the last "
        "its length.",
        &Row::period},
       {"overlap_us", ColumnType::kTime,
        "End of its device work after the first work of the next step on "
        "the device: the part of device_us that two steps share.",
        &Row::overlap},
       {"device", ColumnType::kText,
        "process:device; a row for each that worked for the step.",
        &Row::device},
       {"verdict", ColumnType::kText,
        "What bounds the step, by the critical path to the end "
        "of its work: host_bound, device_bound, comm_bound, copy_bound, "
        "unexplained_wait, or mixed; as in verdicts of lamina path.",
        &Row::verdict},
       {"strength_percent", ColumnType::kReal,
        "Share of the largest class of that chain.", &Row::strength,
        Shown::kPercent},
       {"flag", ColumnType::kText,
        "warmup: leading, above 1.5 times the usual period; cut: the first or "
        "the last, with few of the usual events; outlier: above the median by "
        "5 times the median distance and 2 %; empty: like the others.",
        &Row::flag},
       {"path_host_us", ColumnType::kTime, "Of that chain: the host.",
        &Row::path_host, Shown::kHidden},
       {"path_device_us", ColumnType::kTime,
        "Of that chain: kernels and the gaps between them.", &Row::path_device,
        Shown::kHidden},
       {"path_comm_us", ColumnType::kTime, "Of that chain: communication.",
        &Row::path_comm, Shown::kHidden},
       {"path_copy_us", ColumnType::kTime, "Of that chain: copies.",
        &Row::path_copy, Shown::kHidden},
       {"path_wait_us", ColumnType::kTime,
        "Of that chain: waiting that nothing recorded explains.",
        &Row::path_wait, Shown::kHidden}}};
  return columns;
}

struct SummaryRow {
  std::string_view metric;
  size_t steps;
  int64_t mean, p50, p99, min, max;
};
const RowColumns<SummaryRow>& SummaryColumns() {
  static const RowColumns<SummaryRow> columns{
      "step_summary",
      "Statistics over the steps.",
      {{"metric", ColumnType::kText, "Column of the table steps.",
        &SummaryRow::metric},
       {"steps", ColumnType::kInt,
        "Steps with device work, once for each device; of period_us those "
        "that another follows.",
        &SummaryRow::steps},
       {"mean_us", ColumnType::kTime, "Mean.", &SummaryRow::mean},
       {"p50_us", ColumnType::kTime, "Median.", &SummaryRow::p50},
       {"p99_us", ColumnType::kTime, "99th percentile, nearest rank.",
        &SummaryRow::p99},
       {"min_us", ColumnType::kTime, "Smallest.", &SummaryRow::min},
       {"max_us", ColumnType::kTime, "Largest.", &SummaryRow::max}}};
  return columns;
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

// What the critical path says of each step.
struct OnPath {
  std::optional<path::Verdict> verdict;
  path::PathSums sums;
  host::StepFlags flags;
};

Result<std::vector<OnPath>> StepsOnPath(const Context& context) {
  std::vector<OnPath> out(context.steps.steps().size());
  if (out.empty()) return out;
  LAMINA_ASSIGN(const path::Graph* const graph, context.Get<path::Graph>());
  for (const path::StepPath& step : path::StepPaths(*graph)) {
    out[step.step].verdict = path::VerdictOf(step.sums);
    out[step.step].sums = step.sums;
  }
  const auto flags = host::FlagSteps(graph->model());
  for (size_t i = 0; i < flags.size(); ++i) out[i].flags = flags[i];
  return out;
}

void AddPath(const Context& context, const OnPath& on, Row& row) {
  if (on.flags.warmup) {
    row.flag = "warmup";
  } else if (on.flags.cut) {
    row.flag = "cut";
  } else if (on.flags.outlier) {
    row.flag = "outlier";
  }
  if (!on.verdict || on.verdict->text.empty()) return;
  // Where no device works nothing tells what bounds a step.
  if (!context.trace.device_slices().empty()) {
    row.verdict = on.verdict->text;
    row.strength = on.verdict->percent;
  }
  row.path_host = on.sums.of(path::PathClass::kHost);
  row.path_device = on.sums.of(path::PathClass::kDevice);
  row.path_comm = on.sums.of(path::PathClass::kComm);
  row.path_copy = on.sums.of(path::PathClass::kCopy);
  row.path_wait = on.sums.of(path::PathClass::kWait);
}

Result<ResultSet> Run(const Context& context) {
  const Trace& trace = context.trace;
  const auto& steps = context.steps.steps();
  LAMINA_ASSIGN(const std::vector<OnPath> on_path, StepsOnPath(context));
  std::vector<Row> rows;
  std::vector<SummaryRow> summary;
  struct Metric {
    std::string_view name;
    int64_t (*of)(const Row& row);  // of a step
    std::vector<int64_t> values = {};
  };
  std::vector<Metric> metrics = {
      {"host_us", [](const Row& row) { return *row.host; }},
      {"device_us", [](const Row& row) { return row.device_time; }},
      {"busy_us", [](const Row& row) { return row.busy; }},
      {"idle_us", [](const Row& row) { return row.idle; }},
      {"comm_us", [](const Row& row) { return row.comm; }},
      {"exposed_comm_us", [](const Row& row) { return row.exposed_comm; }},
      {kPeriod, [](const Row& row) { return *row.period; }},
      {"overlap_us", [](const Row& row) { return *row.overlap; }},
      {"kernel_time_us", [](const Row& row) { return row.kernel_time; }}};
  const StepRows step_rows = StepRows::Build(context);
  for (const StepRow& row : step_rows.rows) {
    const Timeline& t = row.timeline;
    std::optional<std::string_view> device;
    if (row.device) device = step_rows.devices[*row.device].name;
    Row& out = rows.emplace_back(Row{.step = std::nullopt,
                                     .name = "(outside)",
                                     .start = std::nullopt,
                                     .host = std::nullopt,
                                     .device_time = t.total_ns,
                                     .busy = t.busy_ns,
                                     .idle = row.idle_ns,
                                     .kernel_time = t.kernel_time_ns,
                                     .comm = t.communication.length_ns(),
                                     .exposed_comm = t.exposed_communication_ns,
                                     .exposed_memcpy = t.exposed_copies_ns,
                                     .kernels = t.slices,
                                     .period = std::nullopt,
                                     .overlap = std::nullopt,
                                     .device = device});
    if (row.step == steps.size()) continue;
    const tree::Step& step = steps[row.step];
    out.step = step.number;
    out.name = trace.Name(step.slice);
    out.start = step.host.start_ns - trace.first_ns;
    out.host = step.host.length_ns();
    out.period = PeriodOf(context, row.step);
    out.overlap = row.overlap_ns;
    AddPath(context, on_path[row.step], out);
    if (!row.device) continue;
    // The length of a step that no other follows is no period: the host may
    // have run ahead of the device.
    for (Metric& metric : metrics) {
      if (metric.name != kPeriod || HasNext(context, row.step))
        metric.values.push_back(metric.of(rows.back()));
    }
  }
  for (Metric& metric : metrics) {
    if (metric.values.empty()) continue;
    const Stats stats = Summarize(metric.values);
    summary.push_back({.metric = metric.name,
                       .steps = stats.count,
                       .mean = RoundNs(stats.mean),
                       .p50 = RoundNs(stats.median),
                       .p99 = stats.p99,
                       .min = stats.min,
                       .max = stats.max});
  }
  ResultSet result;
  result.tables.push_back(Columns().Make(rows));
  result.tables.push_back(SummaryColumns().Make(summary));
  return result;
}

}  // namespace

AnalysisInfo Info() {
  return {"steps", "Device work by step, and statistics over steps.",
          [] {
            return std::vector<Schema>{Columns().schema(),
                                       SummaryColumns().schema()};
          },
          &Run};
}

}  // namespace lamina::analysis::steps
