// SPDX-License-Identifier: Apache-2.0
//
// gpu_timeline: linked work only, all devices merged. With recompute
// detection one block per half, each from its own work; with a threshold idle
// time in two rows.
#include <algorithm>

#include "analysis/common/timeline.h"
#include "compat/tracelens/sheets.h"

namespace lamina::compat::tracelens {
namespace {

using analysis::Timeline;

void AddRows(Table& table, const Timeline& t, bool split_idle,
             std::optional<bool> recompute) {
  const auto add = [&](std::string_view type, int64_t ns) {
    const auto percent =
        Percent(static_cast<double>(ns), static_cast<double>(t.total_ns));
    if (recompute) {
      table.Add(type, Ms(ns), percent, *recompute);
    } else {
      table.Add(type, Ms(ns), percent);
    }
  };
  add("computation_time", t.computation_ns);
  add("exposed_comm_time", t.exposed_communication_ns);
  add("exposed_memcpy_time", t.exposed_copies_ns);
  add("busy_time", t.busy_ns);
  if (split_idle) {
    add("micro_idle_time", t.micro_idle_ns);
    add("macro_idle_time", t.idle_ns - t.micro_idle_ns);
  } else {
    add("idle_time", t.idle_ns);
  }
  add("total_time", t.total_ns);
  add("total_comm_time", t.communication.length_ns());
  add("total_memcpy_time", t.copies.length_ns());
}

}  // namespace

void AddTimelineSheet(const Model& model, ResultSet& result) {
  const Trace& trace = model.trace();
  Schema schema{"gpu_timeline",
                "Time of the devices, linked work only.",
                {{"type", ColumnType::kText, "What the time was."},
                 {"time ms", ColumnType::kReal, "Milliseconds."},
                 {"percent", ColumnType::kReal, "Share of total_time."}}};
  const bool split = model.options().recompute;
  if (split) {
    schema.columns.push_back(
        {"is_recompute", ColumnType::kBool, "Half of the split."});
  }
  Table table(std::move(schema));
  const auto bucket = [&](SliceId s) {
    return analysis::PeerBucket(trace.KindOf(s), trace.Name(s));
  };
  const auto micro_idle_ns = model.context().settings.micro_idle_ns;
  const auto timeline = [&](std::optional<bool> half) {
    std::vector<SliceId> slices;
    for (const SliceId s : model.timeline()) {
      const NodeId launch = model.tree().launch(s);
      const bool recompute = launch.valid() && model.IsRecompute(launch);
      if (!half || recompute == *half) slices.push_back(s);
    }
    return analysis::MakeTimeline(trace, slices, bucket, micro_idle_ns);
  };
  const bool split_idle = micro_idle_ns.has_value();
  if (split) {
    AddRows(table, timeline(false), split_idle, false);
    AddRows(table, timeline(true), split_idle, true);
  } else {
    AddRows(table, timeline(std::nullopt), split_idle, std::nullopt);
  }
  result.tables.push_back(std::move(table));
}

}  // namespace lamina::compat::tracelens
