// SPDX-License-Identifier: Apache-2.0
//
// What activation checkpointing costs: device time that computes again what
// the forward pass had computed.
#include "analysis/common/recompute.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/common/timeline.h"
#include "base/decimal.h"
#include "table/row_columns.h"

namespace lamina::analysis::recompute {
namespace {

// Times in nanoseconds.
struct TimelineRow {
  bool is_recompute;
  std::string_view type;
  int64_t time;
  std::optional<double> percent;
};
const RowColumns<TimelineRow>& TimelineColumns() {
  static const RowColumns<TimelineRow> columns{
      "recompute_timeline",
      "The GPU timeline of recomputed work and of all other work, each "
      "from its own device events.",
      {{"is_recompute", ColumnType::kBool, "Half of the split.",
        &TimelineRow::is_recompute},
       {"type", ColumnType::kText, "What the time was.", &TimelineRow::type},
       {"time_us", ColumnType::kTime, "Length of the union.",
        &TimelineRow::time},
       {"percent", ColumnType::kReal, "Share of total_time of the half.",
        &TimelineRow::percent, Shown::kPercent}}};
  return columns;
}

struct OpRow {
  std::string_view op;
  bool is_recompute;
  size_t kernels;
  int64_t kernel_time;
  std::optional<double> percent;
};
const RowColumns<OpRow>& OpColumns() {
  static const RowColumns<OpRow> columns{
      "recompute_ops",
      "Linked device time by op, recomputed or not.",
      {{"op", ColumnType::kText, "Op that launched the work.", &OpRow::op},
       {"is_recompute", ColumnType::kBool, "Recomputed.", &OpRow::is_recompute},
       {"kernels", ColumnType::kInt, "Device slices.", &OpRow::kernels},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations.",
        &OpRow::kernel_time},
       {"percent", ColumnType::kReal, "Share of linked device time.",
        &OpRow::percent, Shown::kBar}}};
  return columns;
}

Result<ResultSet> Run(const Context& context) {
  const Trace& trace = context.trace;
  const tree::Tree& tree = context.tree;
  const std::vector<bool> recompute = FindRecompute(tree);
  const auto bucket = [&](SliceId s) { return context.device.bucket(s); };
  std::vector<TimelineRow> timeline;
  int64_t all = 0;
  int64_t again = 0;
  for (const bool half : {false, true}) {
    std::vector<SliceId> slices;
    for (const SliceId s : trace.device_slices()) {
      const NodeId launch = tree.launch(s);
      if (!launch.valid() || recompute[launch.value] != half) continue;
      slices.push_back(s);
    }
    const Timeline t = MakeTimeline(trace, slices, bucket);
    all += t.kernel_time_ns;
    if (half) again = t.kernel_time_ns;
    const std::pair<std::string_view, int64_t> rows[] = {
        {"computation_time", t.computation_ns},
        {"exposed_comm_time", t.exposed_communication_ns},
        {"exposed_memcpy_time", t.exposed_copies_ns},
        {"busy_time", t.busy_ns},
        {"idle_time", t.idle_ns},
        {"total_time", t.total_ns},
        {"total_comm_time", t.communication.length_ns()},
        {"total_memcpy_time", t.copies.length_ns()}};
    for (const auto& [type, ns] : rows) {
      timeline.push_back(
          {.is_recompute = half,
           .type = type,
           .time = ns,
           .percent = t.total_ns > 0
                          ? std::optional(100.0 * static_cast<double>(ns) /
                                          static_cast<double>(t.total_ns))
                          : std::nullopt});
    }
  }
  struct Sum {
    size_t kernels = 0;
    int64_t ns = 0;
  };
  std::map<std::pair<std::string_view, bool>, Sum> sums;
  for (const SliceId s : tree.launched()) {
    Sum& sum = sums[{tree.name(context.device.launcher(s)),
                     recompute[tree.launch(s).value]}];
    ++sum.kernels;
    sum.ns += trace.Duration(s);
  }
  std::vector<std::pair<std::pair<std::string_view, bool>, Sum>> order(
      sums.begin(), sums.end());
  std::stable_sort(
      order.begin(), order.end(),
      [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  std::vector<OpRow> ops;
  for (const auto& [key, sum] : order) {
    ops.push_back(
        {.op = key.first,
         .is_recompute = key.second,
         .kernels = sum.kernels,
         .kernel_time = sum.ns,
         .percent = all > 0
                        ? std::optional(100.0 * static_cast<double>(sum.ns) /
                                        static_cast<double>(all))
                        : std::nullopt});
  }
  ResultSet result;
  const char* const id = "recomputation";
  const Evidence rows = {"recompute_ops", "is_recompute", "True", {}};
  Note note =
      MakeNote(Severity::kInfo, id,
               "No recomputation found: the trace has no Python frame of "
               "torch/utils/checkpoint.py (record with with_stack=True).",
               {rows});
  if (again > 0) {
    note = MakeNote(
        Severity::kOpportunity, id,
        fmt::format(
            "activation checkpointing computes {:.1f} % of the linked device "
            "time a second time.",
            100.0 * static_cast<double>(again) / static_cast<double>(all)),
        {rows});
    note.worth_ns = again;
    note.claim = "measured";
  }
  result.notes.push_back(std::move(note));
  result.tables.push_back(TimelineColumns().Make(timeline));
  result.tables.push_back(OpColumns().Make(ops));
  return result;
}

}  // namespace

AnalysisInfo Info() {
  return {"recompute", "What activation checkpointing computes again.",
          [] {
            return std::vector<Schema>{TimelineColumns().schema(),
                                       OpColumns().schema()};
          },
          &Run};
}

}  // namespace lamina::analysis::recompute
