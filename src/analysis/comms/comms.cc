// SPDX-License-Identifier: Apache-2.0
//
// Collectives of this rank, grouped by what they move and with whom.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/common/collective.h"
#include "analysis/common/context.h"
#include "analysis/common/stats.h"
#include "analysis/common/timeline.h"
#include "base/interval_set.h"
#include "table/row_columns.h"

namespace lamina::analysis::comms {
namespace {

// Times in nanoseconds.
using OptionalText = std::optional<std::string_view>;
using OptionalInt = std::optional<int64_t>;
struct CollectiveRow {
  std::string_view collective;
  OptionalText group, group_description, group_ranks;
  OptionalInt group_size;
  OptionalText dtype;
  OptionalInt in_bytes, out_bytes, device, stream;
  size_t count;
  int64_t kernel_time, exposed, mean, p50;
  OptionalInt std_dev;
  int64_t min, max;
  OptionalInt in_elements, out_elements;
  OptionalText in_split, out_split;
  std::string_view kernel;
};
const RowColumns<CollectiveRow>& CollectiveColumns() {
  static const RowColumns<CollectiveRow> columns{
      "collectives",
      "Communication of this rank by kind, group and size.",
      {{"collective", ColumnType::kText, "Kind.", &CollectiveRow::collective},
       {"group", ColumnType::kText, "Process group; empty if not recorded.",
        &CollectiveRow::group},
       {"group_description", ColumnType::kText, "Its description.",
        &CollectiveRow::group_description, Shown::kHidden},
       {"group_ranks", ColumnType::kText, "Its ranks, as recorded.",
        &CollectiveRow::group_ranks, Shown::kHidden},
       {"group_size", ColumnType::kInt, "Ranks in the group.",
        &CollectiveRow::group_size},
       {"dtype", ColumnType::kText, "Element type.", &CollectiveRow::dtype},
       {"in_bytes", ColumnType::kInt, "Bytes that go in per call.",
        &CollectiveRow::in_bytes, Shown::kBytes},
       {"out_bytes", ColumnType::kInt, "Bytes that come out per call.",
        &CollectiveRow::out_bytes, Shown::kBytes},
       {"device_index", ColumnType::kInt, "Device.", &CollectiveRow::device,
        Shown::kHidden},
       {"stream", ColumnType::kInt, "Stream.", &CollectiveRow::stream,
        Shown::kHidden},
       {"count", ColumnType::kInt, "Calls.", &CollectiveRow::count},
       {"kernel_time_us", ColumnType::kTime,
        "Sum of durations; includes waiting for other ranks.",
        &CollectiveRow::kernel_time},
       {"exposed_us", ColumnType::kTime,
        "Part of the time in which the device computed nothing.",
        &CollectiveRow::exposed},
       {"mean_us", ColumnType::kTime, "Mean duration.", &CollectiveRow::mean},
       {"p50_us", ColumnType::kTime, "Median.", &CollectiveRow::p50},
       {"std_us", ColumnType::kTime, "Standard deviation (n - 1).",
        &CollectiveRow::std_dev, Shown::kHidden},
       {"min_us", ColumnType::kTime, "Shortest: waits least.",
        &CollectiveRow::min},
       {"max_us", ColumnType::kTime, "Longest.", &CollectiveRow::max},
       {"in_elements", ColumnType::kInt, "Elements in.",
        &CollectiveRow::in_elements, Shown::kHidden},
       {"out_elements", ColumnType::kInt, "Elements out.",
        &CollectiveRow::out_elements, Shown::kHidden},
       {"in_split", ColumnType::kText, "Split sizes in.",
        &CollectiveRow::in_split, Shown::kHidden},
       {"out_split", ColumnType::kText, "Split sizes out.",
        &CollectiveRow::out_split, Shown::kHidden},
       {"kernel", ColumnType::kText, "Kernel name of the first.",
        &CollectiveRow::kernel, Shown::kHidden}}};
  return columns;
}

struct Group {
  Collective first;
  std::vector<int64_t> times;
  IntervalSet busy;
};

Result<ResultSet> Run(const Context& context) {
  const Trace& trace = context.trace;
  const auto all = CollectCollectives(context.tree, context.device);
  // What one device computes hides no communication of another.
  std::vector<IntervalSet> compute;
  std::vector<size_t> device_of(trace.device.size(), 0);  // by device row
  if (!all.empty()) {
    for (const DeviceWork& device : WorkByDevice(trace)) {
      IntervalSet& own = compute.emplace_back();
      for (const SliceId s : device.slices) {
        device_of[trace.slices.detail[s.value]] = compute.size() - 1;
        if (context.device.bucket(s) == Bucket::kCompute)
          own.AppendSorted({trace.Start(s), trace.End(s)});
      }
    }
  }
  using Key = std::tuple<CollectiveKind, StringId, StringId, StringId, StringId,
                         StringId, int64_t, int64_t, int64_t, uint32_t>;
  absl::flat_hash_map<Key, size_t> ids;
  std::vector<Group> groups;
  static const trace::CollectiveArgs kNothing;
  for (const Collective& c : all) {
    const trace::CollectiveArgs& a = c.args ? *c.args : kNothing;
    const Key key(c.kind, a.group, a.group_ranks, a.dtype, a.in_split,
                  a.out_split, a.group_size, a.in_elements, a.out_elements,
                  trace.Device(c.slice)->lane.value);
    const auto [it, is_new] = ids.try_emplace(key, groups.size());
    if (is_new) groups.push_back({c, {}, {}});
    Group& group = groups[it->second];
    group.times.push_back(trace.Duration(c.slice));
    group.busy.AppendSorted({trace.Start(c.slice), trace.End(c.slice)});
  }
  struct Row {
    Group* group;
    Stats stats;
  };
  std::vector<Row> rows;
  for (Group& group : groups) rows.push_back({&group, Summarize(group.times)});
  std::sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    if (a.stats.sum != b.stats.sum) return a.stats.sum > b.stats.sum;
    return trace.Uid(a.group->first.slice) < trace.Uid(b.group->first.slice);
  });
  std::vector<CollectiveRow> out;
  for (const Row& row : rows) {
    const Collective& c = row.group->first;
    const trace::CollectiveArgs& a = c.args ? *c.args : kNothing;
    const auto bytes = [&](int64_t elements) {
      return CollectiveBytes(elements, trace.Text(a.dtype));
    };
    const auto number = [](int64_t value) {
      return value == trace::kNoInt ? std::nullopt : std::optional(value);
    };
    const auto text = [&](StringId id) {
      return id.valid() ? std::optional(trace.Text(id)) : std::nullopt;
    };
    std::optional<int64_t> std_dev;
    if (row.stats.std_dev) std_dev = RoundNs(*row.stats.std_dev);
    out.push_back(
        {.collective = CollectiveKindName(c.kind),
         .group = text(a.group),
         .group_description = text(a.group_desc),
         .group_ranks = text(a.group_ranks),
         .group_size = number(a.group_size),
         .dtype = text(a.dtype),
         .in_bytes = bytes(a.in_elements),
         .out_bytes = bytes(a.out_elements),
         .device = number(trace.Device(c.slice)->device),
         .stream = number(trace.Device(c.slice)->stream),
         .count = row.stats.count,
         .kernel_time = row.stats.sum,
         .exposed =
             row.group->busy
                 .Minus(compute[device_of[trace.slices.detail[c.slice.value]]])
                 .length_ns(),
         .mean = RoundNs(row.stats.mean),
         .p50 = RoundNs(row.stats.median),
         .std_dev = std_dev,
         .min = row.stats.min,
         .max = row.stats.max,
         .in_elements = number(a.in_elements),
         .out_elements = number(a.out_elements),
         .in_split = text(a.in_split),
         .out_split = text(a.out_split),
         .kernel = trace.Name(c.slice)});
  }
  ResultSet result;
  result.tables.push_back(CollectiveColumns().Make(out));
  return result;
}

}  // namespace

AnalysisInfo Info() {
  return {"comms", "Collectives of one rank.",
          [] { return std::vector<Schema>{CollectiveColumns().schema()}; },
          &Run};
}

}  // namespace lamina::analysis::comms
