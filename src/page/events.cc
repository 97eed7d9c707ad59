// SPDX-License-Identifier: Apache-2.0
#include "page/events.h"

#include <algorithm>
#include <fmt/core.h>

#include "page/counters.h"

namespace lamina::page {
namespace {

using analysis::Context;
using trace::Trace;
using tree::NodeId;

// Adds a column of `rows`.
template <typename Row, typename Get>
void AddColumn(render::Block& block, std::string name,
               const std::vector<Row>& rows, const Get& get,
               bool delta = false) {
  std::vector<int64_t> values;
  values.reserve(rows.size());
  for (const Row& row : rows) values.push_back(static_cast<int64_t>(get(row)));
  block.Add(std::move(name), values, delta);
}

// The columns that say what an event belongs to.
void AddMembership(render::Block& block, const std::vector<DeviceRow>& rows) {
  AddColumn(block, "kernel", rows, [](auto& row) { return row.kernel; });
  AddColumn(block, "family", rows, [](auto& row) { return row.family; });
  AddColumn(block, "op", rows, [](auto& row) { return row.op; });
  AddColumn(block, "module", rows, [](auto& row) { return row.module; });
  AddColumn(block, "layer", rows, [](auto& row) { return row.layer; });
  AddColumn(block, "pass", rows, [](auto& row) { return row.pass; });
  AddColumn(block, "step", rows, [](auto& row) { return row.step; });
}

render::Block DeviceBlock(const Context& context,
                          const std::vector<DeviceRow>& rows,
                          const std::vector<uint32_t>& host_row,
                          const CallStacks& stacks) {
  render::Block block("device", rows.size());
  AddColumn(
      block, "start", rows, [](auto& row) { return row.start_ns; }, true);
  AddColumn(block, "dur", rows, [](auto& row) { return row.dur_ns; });
  AddMembership(block, rows);
  const Trace& trace = context.trace;
  AddColumn(
      block, "uid", rows, [&](auto& row) { return trace.Uid(row.slice); },
      true);
  AddColumn(
      block, "launch", rows,
      [&](auto& row) {
        const NodeId call = context.tree.launch(row.slice);
        return call.valid() ? host_row[context.tree.slice(call).value] : 0;
      },
      true);
  AddColumn(
      block, "call", rows, [](auto& row) { return row.call; }, true);
  AddColumn(block, "place", rows, [](auto& row) { return row.place; });
  const bool replays = std::any_of(rows.begin(), rows.end(),
                                   [](auto& row) { return row.graph != 0; });
  if (replays)
    AddColumn(block, "graph", rows, [](auto& row) { return row.graph; });
  AddColumn(block, "rule", rows, [](auto& row) { return row.rule; });
  if (!stacks.empty()) {
    AddColumn(
        block, "stack", rows,
        [&](auto& row) {
          return stacks.of_device[trace.slices.detail[row.slice.value]];
        },
        true);
  }
  return block;
}

// What is left of the events that are no rows of their own.
void AddMerged(const ThinRows& thin, render::Page& page) {
  std::vector<DeviceRow> rows;
  for (const MergedRow& merged : thin.merged) rows.push_back(merged.of);
  render::Block block("merged", rows.size());
  AddColumn(block, "lane", rows, [](auto& row) { return row.lane; });
  AddColumn(block, "dur", rows, [](auto& row) { return row.dur_ns; });
  AddColumn(block, "events", thin.merged, [](auto& row) { return row.events; });
  AddMembership(block, rows);
  page.blocks.push_back(std::move(block));

  render::Block buckets("buckets", thin.buckets.size());
  const auto& of = thin.buckets;
  AddColumn(buckets, "lane", of, [](auto& row) { return row.lane; });
  AddColumn(
      buckets, "bucket", of, [](auto& row) { return row.bucket; }, true);
  AddColumn(buckets, "family", of, [](auto& row) { return row.family; });
  AddColumn(buckets, "busy", of, [](auto& row) { return row.busy_ns; });
  page.blocks.push_back(std::move(buckets));

  std::string dropped;
  for (const std::string_view name : thin.dropped)
    dropped += fmt::format("{}\"{}\"", dropped.empty() ? "" : ",", name);
  page.facts.emplace_back(
      "thinned",
      fmt::format("{{\"bucket_ns\":{},\"origin_ns\":{},"
                  "\"last_ns\":{},\"dropped\":[{}]}}",
                  thin.bucket_ns, thin.origin_ns, thin.last_ns, dropped));
}

}  // namespace

void AddEvents(const Context& context, const std::vector<DeviceRow>& rows,
               const ThinRows* thin, const HostChoice& choice,
               render::Page& page) {
  HostEvents host;
  const auto host_rows = host.Add(context, choice.detail, choice.mask, {},
                                  page.strings, choice.python_ns);
  std::vector<DeviceRow> singles;
  if (thin != nullptr) {
    for (const uint32_t row : thin->singles) singles.push_back(rows[row]);
    AddMerged(*thin, page);
  }
  const std::vector<DeviceRow>& shown = thin != nullptr ? singles : rows;
  std::vector<size_t> in_lane(context.trace.streams.size());
  for (const DeviceRow& row : shown) ++in_lane[row.lane];
  std::string lanes = "[";
  size_t first = 0;
  AppendLanes(context.trace, {}, in_lane, first, lanes);
  page.facts.emplace_back("lanes", lanes + "]");
  page.facts.emplace_back("families", FamiliesJson(context.catalog));
  page.blocks.push_back(DeviceBlock(context, shown, host_rows, choice.stacks));
  host.AddTo(page);
  AddFrames(context.trace, choice.stacks, page);
  AddAutograd(context, host_rows, page);
  AddCounters(context.trace, page);
}

}  // namespace lamina::page
