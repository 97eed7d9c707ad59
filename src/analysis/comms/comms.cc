// SPDX-License-Identifier: Apache-2.0
//
// Collectives of this rank, grouped by what they move and with whom.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <tuple>
#include <vector>

#include "analysis/common/collective.h"
#include "analysis/common/context.h"
#include "analysis/common/stats.h"
#include "analysis/common/timeline.h"
#include "base/interval_set.h"

namespace lamina::analysis::comms {
namespace {

Schema CollectivesSchema() {
  return {
      "collectives",
      "Communication of this rank by kind, group and size.",
      {{"collective", ColumnType::kText, "Kind."},
       {"group", ColumnType::kText, "Process group; empty if not recorded."},
       {"group_description", ColumnType::kText, "Its description.",
        Shown::kHidden},
       {"group_ranks", ColumnType::kText, "Its ranks, as recorded.",
        Shown::kHidden},
       {"group_size", ColumnType::kInt, "Ranks in the group."},
       {"dtype", ColumnType::kText, "Element type."},
       {"in_bytes", ColumnType::kInt, "Bytes that go in per call.",
        Shown::kBytes},
       {"out_bytes", ColumnType::kInt, "Bytes that come out per call.",
        Shown::kBytes},
       {"device", ColumnType::kInt, "Device.", Shown::kHidden},
       {"stream", ColumnType::kInt, "Stream.", Shown::kHidden},
       {"count", ColumnType::kInt, "Calls."},
       {"kernel_time_us", ColumnType::kTime,
        "Sum of durations; includes waiting for other ranks."},
       {"exposed_us", ColumnType::kTime,
        "Part of the time in which the device computed nothing."},
       {"mean_us", ColumnType::kTime, "Mean duration."},
       {"p50_us", ColumnType::kTime, "Median."},
       {"std_us", ColumnType::kTime, "Standard deviation (n - 1).",
        Shown::kHidden},
       {"min_us", ColumnType::kTime, "Shortest: waits least."},
       {"max_us", ColumnType::kTime, "Longest."},
       {"in_elements", ColumnType::kInt, "Elements in.", Shown::kHidden},
       {"out_elements", ColumnType::kInt, "Elements out.", Shown::kHidden},
       {"in_split", ColumnType::kText, "Split sizes in.", Shown::kHidden},
       {"out_split", ColumnType::kText, "Split sizes out.", Shown::kHidden},
       {"kernel", ColumnType::kText, "Kernel name of the first.",
        Shown::kHidden}}};
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
  Table table(CollectivesSchema());
  for (const Row& row : rows) {
    const Collective& c = row.group->first;
    const trace::CollectiveArgs& a = c.args ? *c.args : kNothing;
    const auto element = CollectiveElementBytes(trace.Text(a.dtype));
    const auto bytes = [&](int64_t elements) {
      return element && elements != trace::kNoInt && elements >= 0 &&
                     elements < (int64_t{1} << 58)
                 ? Value(elements * *element)
                 : Value();
    };
    const auto number = [](int64_t value) {
      return value == trace::kNoInt ? Value() : Value(value);
    };
    const auto text = [&](StringId id) {
      return id.valid() ? Value(trace.Text(id)) : Value();
    };
    std::optional<int64_t> std_dev;
    if (row.stats.std_dev) std_dev = RoundNs(*row.stats.std_dev);
    table.Add(CollectiveKindName(c.kind), text(a.group), text(a.group_desc),
              text(a.group_ranks), number(a.group_size), text(a.dtype),
              bytes(a.in_elements), bytes(a.out_elements),
              number(trace.Device(c.slice)->device),
              number(trace.Device(c.slice)->stream), row.stats.count,
              row.stats.sum,
              row.group->busy
                  .Minus(compute[device_of[trace.slices.detail[c.slice.value]]])
                  .length_ns(),
              RoundNs(row.stats.mean), RoundNs(row.stats.median), std_dev,
              row.stats.min, row.stats.max, number(a.in_elements),
              number(a.out_elements), text(a.in_split), text(a.out_split),
              trace.Name(c.slice));
  }
  ResultSet result;
  result.tables.push_back(std::move(table));
  return result;
}

}  // namespace

AnalysisInfo Info() {
  return {"comms", "Collectives of one rank.",
          [] { return std::vector<Schema>{CollectivesSchema()}; }, &Run};
}

}  // namespace lamina::analysis::comms
