// SPDX-License-Identifier: Apache-2.0
//
// gpu_timeline: where the time of the devices went, over all of them and per
// device, because a union over devices hides that one of them was idle.
// gaps: the longest times without device work and what the host did in them.
#include "analysis/common/timeline.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/common/gaps.h"
#include "analysis/common/mean_timeline.h"
#include "analysis/common/stats.h"
#include "analysis/host/tables.h"
#include "table/row_columns.h"

namespace lamina::analysis::timeline {
namespace {

constexpr size_t kMaxGaps = 100;

// Times in nanoseconds.
struct TimelineRow {
  std::string_view device, type;
  int64_t time;
  std::optional<double> percent;
};
const RowColumns<TimelineRow>& TimelineColumns() {
  static const RowColumns<TimelineRow> columns{
      "gpu_timeline",
      "Time of the devices: computation + exposed communication + exposed "
      "copies + idle = total.",
      {{"device", ColumnType::kText,
        "\"all\" for the union over devices, \"mean\" for the mean of several "
        "in the window of all, else process:device in its own window.",
        &TimelineRow::device},
       {"type", ColumnType::kText, "What the time was.", &TimelineRow::type},
       {"time_us", ColumnType::kTime, "Length of the union of intervals.",
        &TimelineRow::time},
       {"percent", ColumnType::kReal, "Share of total_time.",
        &TimelineRow::percent, Shown::kBar}}};
  return columns;
}

struct GapRow {
  int64_t start, dur;
  double percent;
  std::string_view cause;
  std::optional<std::string_view> host_event, next_kernel;
  std::optional<uint32_t> uid;
  std::optional<std::string> parts = std::nullopt;
};

const RowColumns<GapRow>& GapColumns() {
  static const RowColumns<GapRow> columns{
      "gaps",
      "Longest times in which no device worked.",
      {{"start_us", ColumnType::kTime,
        "Begin, from the first event of the trace.", &GapRow::start},
       {"dur_us", ColumnType::kTime, "Length.", &GapRow::dur},
       {"percent", ColumnType::kReal, "Share of the window.", &GapRow::percent,
        Shown::kPercent},
       {"cause", ColumnType::kText,
        "host_busy: the host ran something else; host_blocked: it sat in "
        "a blocking call; launch_latency: work was launched and had not "
        "begun; queued: it was launched more than 100 us before and waited "
        "for something on the device; unknown.",
        &GapRow::cause},
       {"host_event", ColumnType::kText,
        "Innermost host event that covers at least half of the gap, on the "
        "thread that launches next.",
        &GapRow::host_event},
       {"next_kernel", ColumnType::kText, "The work that ended the gap.",
        &GapRow::next_kernel},
       {"uid", ColumnType::kInt, "Event number of that work.", &GapRow::uid,
        Shown::kHidden},
       {"parts", ColumnType::kText,
        "CAUSE/ACTIVITY:us, the largest first, as in idle_gaps; they add up to "
        "the gap. Empty where several devices end it.",
        &GapRow::parts}}};
  return columns;
}

void AddRows(std::vector<TimelineRow>& rows, std::string_view device,
             const Timeline& t, std::optional<int64_t> micro_idle_ns) {
  const auto add = [&](std::string_view type, int64_t ns) {
    std::optional<double> percent;
    if (t.total_ns > 0) {
      percent =
          100.0 * static_cast<double>(ns) / static_cast<double>(t.total_ns);
    }
    rows.push_back(
        {.device = device, .type = type, .time = ns, .percent = percent});
  };
  add("computation_time", t.computation_ns);
  add("exposed_comm_time", t.exposed_communication_ns);
  add("exposed_memcpy_time", t.exposed_copies_ns);
  add("busy_time", t.busy_ns);
  if (micro_idle_ns) {
    add("micro_idle_time", t.micro_idle_ns);
    add("macro_idle_time", t.idle_ns - t.micro_idle_ns);
  } else {
    add("idle_time", t.idle_ns);
  }
  add("total_time", t.total_ns);
  add("total_comm_time", t.communication.length_ns());
  add("total_memcpy_time", t.copies.length_ns());
}

// Gaps of several devices are told apart in their own rows only.
void AddMean(std::vector<TimelineRow>& rows, const MeanTimeline& mean) {
  const auto add = [&](std::string_view type, int64_t ns) {
    rows.push_back({.device = "mean",
                    .type = type,
                    .time = ns,
                    .percent = PercentOf(ns, mean.total_ns)});
  };
  add("computation_time", mean.computation_ns);
  add("exposed_comm_time", mean.exposed_communication_ns);
  add("exposed_memcpy_time", mean.exposed_copies_ns);
  add("busy_time", mean.busy_ns);
  add("idle_time", mean.idle_ns);
  add("total_time", mean.total_ns);
  add("total_comm_time", mean.communication_ns);
  add("total_memcpy_time", mean.copies_ns);
}

// What the longest gaps of single devices consist of, by the work that ended
// them and their length.
using PartsOfGaps = std::map<std::pair<int64_t, int64_t>, std::string>;

Result<PartsOfGaps> FindParts(const Context& context) {
  // As many as there may be before those of all among several devices.
  constexpr size_t kMostGaps = 1000;
  PartsOfGaps parts;
  if (!context.settings.idle_causes) return parts;
  LAMINA_ASSIGN(const auto* const model, context.Get<host::HostModel>());
  LAMINA_ASSIGN(const auto* const idle, context.Get<host::Idle>());
  host::TableOptions options;
  options.top = kMostGaps;
  const Table gaps = host::IdleGapsTable(*model, *idle, options);
  const size_t next = gaps.schema().IndexOf("next_uid");
  const size_t length = gaps.schema().IndexOf("dur_us");
  const size_t text = gaps.schema().IndexOf("parts");
  for (size_t r = 0; r < gaps.rows(); ++r) {
    if (gaps.IsNull(r, next)) continue;
    parts.emplace(std::pair(gaps.Int(r, next), gaps.Int(r, length)),
                  gaps.At(r, text).text());
  }
  return parts;
}

Result<Table> MakeGaps(const Context& context, const Timeline& all) {
  const Trace& trace = context.trace;
  std::vector<GapRow> rows;
  PartsOfGaps parts;
  const auto longest = LongestGaps(context.tree, all, kMaxGaps);
  if (!longest.empty()) {
    LAMINA_ASSIGN(parts, FindParts(context));
  }
  for (const Gap& gap : longest) {
    const int64_t length = gap.interval.length_ns();
    const double percent = all.total_ns > 0
                               ? 100.0 * static_cast<double>(length) /
                                     static_cast<double>(all.total_ns)
                               : 0.0;
    rows.push_back(
        {.start = gap.interval.start_ns - trace.first_ns,
         .dur = length,
         .percent = percent,
         .cause = GapCauseName(gap.cause),
         .host_event = gap.host.valid() ? std::optional<std::string_view>(
                                              trace.Name(gap.host))
                                        : std::nullopt,
         .next_kernel = gap.next.valid() ? std::optional<std::string_view>(
                                               trace.Name(gap.next))
                                         : std::nullopt,
         .uid = gap.next.valid() ? std::optional(trace.Uid(gap.next))
                                 : std::nullopt});
    if (!gap.next.valid()) continue;
    const auto of = parts.find(std::pair(trace.Uid(gap.next), length));
    if (of != parts.end()) rows.back().parts = of->second;
  }
  return GapColumns().Make(rows);
}

Result<ResultSet> Run(const Context& context) {
  const Trace& trace = context.trace;
  const auto bucket = [&](SliceId s) { return context.device.bucket(s); };
  std::vector<TimelineRow> rows;
  const Timeline all = MakeTimeline(trace, trace.device_slices(), bucket,
                                    context.settings.micro_idle_ns);
  AddRows(rows, "all", all, context.settings.micro_idle_ns);

  const std::vector<DeviceWork> devices = WorkByDevice(trace);
  if (devices.size() > 1) {
    std::vector<Timeline> timelines;
    for (const DeviceWork& device : devices) {
      timelines.push_back(MakeTimeline(trace, device.slices, bucket,
                                       context.settings.micro_idle_ns));
    }
    AddMean(rows, MeanOf(timelines, all.total_ns));
    for (size_t d = 0; d < devices.size(); ++d) {
      AddRows(rows, devices[d].name, timelines[d],
              context.settings.micro_idle_ns);
    }
  }
  ResultSet result;
  result.tables.push_back(TimelineColumns().Make(rows));
  LAMINA_ASSIGN(Table gaps, MakeGaps(context, all));
  result.tables.push_back(std::move(gaps));
  return result;
}

}  // namespace

AnalysisInfo Info() {
  return {"timeline", "Busy, exposed and idle time of the devices.",
          [] {
            return std::vector<Schema>{TimelineColumns().schema(),
                                       GapColumns().schema()};
          },
          &Run};
}

}  // namespace lamina::analysis::timeline
