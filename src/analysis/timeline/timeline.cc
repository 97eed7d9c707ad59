// SPDX-License-Identifier: Apache-2.0
//
// gpu_timeline: where the time of the devices went, over all of them and per
// device, because a union over devices hides that one of them was idle.
// gaps: the longest times without device work and what the host did in them.
#include "analysis/common/timeline.h"

#include <string>

#include "analysis/common/context.h"
#include "analysis/common/gaps.h"
#include "analysis/common/mean_timeline.h"
#include "analysis/common/stats.h"

namespace lamina::analysis::timeline {
namespace {

constexpr size_t kMaxGaps = 100;

Schema TimelineSchema() {
  return {
      "gpu_timeline",
      "Time of the devices: computation + exposed communication + exposed "
      "copies + idle = total.",
      {{"device", ColumnType::kText,
        "\"all\" for the union over devices, \"mean\" for the mean of several "
        "in the window of all, else process:device in its own window."},
       {"type", ColumnType::kText, "What the time was."},
       {"time_us", ColumnType::kTime, "Length of the union of intervals."},
       {"percent", ColumnType::kReal, "Share of total_time.", Shown::kBar}}};
}

Schema GapsSchema() {
  return {
      "gaps",
      "Longest times in which no device worked.",
      {{"start_us", ColumnType::kTime,
        "Begin, from the first event of the trace."},
       {"dur_us", ColumnType::kTime, "Length."},
       {"percent", ColumnType::kReal, "Share of the window.", Shown::kPercent},
       {"cause", ColumnType::kText,
        "host_busy: the host ran something else; host_blocked: it sat in "
        "a blocking call; launch_latency: work was launched and had not "
        "begun; queued: it was launched more than 100 us before and waited "
        "for something on the device; unknown."},
       {"host_event", ColumnType::kText,
        "Innermost host event that covers at least half of the gap, on the "
        "thread that launches next."},
       {"next_kernel", ColumnType::kText, "The work that ended the gap."},
       {"uid", ColumnType::kInt, "Event number of that work.", Shown::kHidden},
       {"parts", ColumnType::kText,
        "CAUSE/ACTIVITY:us, the largest first, as in idle_gaps; they add up to "
        "the gap. Empty where several devices end it."}}};
}

void AddRows(Table& table, const std::string& device, const Timeline& t,
             std::optional<int64_t> micro_idle_ns) {
  const auto add = [&](std::string_view type, int64_t ns) {
    std::optional<double> percent;
    if (t.total_ns > 0) {
      percent =
          100.0 * static_cast<double>(ns) / static_cast<double>(t.total_ns);
    }
    table.Add(device, type, ns, percent);
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
void AddMean(Table& table, const MeanTimeline& mean) {
  const auto add = [&](std::string_view type, int64_t ns) {
    table.Add("mean", type, ns, PercentOf(ns, mean.total_ns));
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

Table MakeGaps(const Context& context, const Timeline& all) {
  const Trace& trace = context.trace;
  Table table(GapsSchema());
  for (const Gap& gap : LongestGaps(context.tree, all, kMaxGaps)) {
    const int64_t length = gap.interval.length_ns();
    const double percent = all.total_ns > 0
                               ? 100.0 * static_cast<double>(length) /
                                     static_cast<double>(all.total_ns)
                               : 0.0;
    table.Add(gap.interval.start_ns - trace.first_ns, length, percent,
              GapCauseName(gap.cause),
              gap.host.valid() ? Value(trace.Name(gap.host)) : Value(),
              gap.next.valid() ? Value(trace.Name(gap.next)) : Value(),
              gap.next.valid() ? Value(trace.Uid(gap.next)) : Value(),
              std::nullopt);
  }
  return table;
}

Result<ResultSet> Run(const Context& context) {
  const Trace& trace = context.trace;
  const auto bucket = [&](SliceId s) { return context.device.bucket(s); };
  Table table(TimelineSchema());
  const Timeline all = MakeTimeline(trace, trace.device_slices(), bucket,
                                    context.settings.micro_idle_ns);
  AddRows(table, "all", all, context.settings.micro_idle_ns);

  const std::vector<DeviceWork> devices = WorkByDevice(trace);
  if (devices.size() > 1) {
    std::vector<Timeline> timelines;
    for (const DeviceWork& device : devices) {
      timelines.push_back(MakeTimeline(trace, device.slices, bucket,
                                       context.settings.micro_idle_ns));
    }
    AddMean(table, MeanOf(timelines, all.total_ns));
    for (size_t d = 0; d < devices.size(); ++d) {
      AddRows(table, devices[d].name, timelines[d],
              context.settings.micro_idle_ns);
    }
  }
  ResultSet result;
  result.tables.push_back(std::move(table));
  result.tables.push_back(MakeGaps(context, all));
  return result;
}

}  // namespace

AnalysisInfo Info() {
  return {"timeline", "Busy, exposed and idle time of the devices.",
          [] {
            return std::vector<Schema>{TimelineSchema(), GapsSchema()};
          },
          &Run};
}

}  // namespace lamina::analysis::timeline
