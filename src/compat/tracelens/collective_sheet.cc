// SPDX-License-Identifier: Apache-2.0
//
// coll_analysis: communication of one rank. Groups with a missing field are
// left out, as TraceLens does; lamina's own table `collectives` has them.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/common/collective.h"
#include "analysis/common/stats.h"
#include "compat/tracelens/sheets.h"

namespace lamina::compat::tracelens {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

std::string_view PeerName(const Trace& trace, const analysis::Collective& c) {
  if (c.args != nullptr && c.args->name.valid())
    return trace.Text(c.args->name);
  switch (c.kind) {
    case analysis::CollectiveKind::kAllReduce:
      return "allreduce";
    case analysis::CollectiveKind::kAllGather:
      return "allgather";
    case analysis::CollectiveKind::kReduceScatter:
      return "reducescatter";
    case analysis::CollectiveKind::kBroadcast:
      return "broadcast";
    case analysis::CollectiveKind::kReduce:
      return "reduce";
    case analysis::CollectiveKind::kSendRecv:
      return "sendrecv";
    default:
      return {};
  }
}

}  // namespace

void AddCollectiveSheet(const Model& model, ResultSet& result) {
  const Trace& trace = model.trace();
  using Key = std::tuple<std::string_view, std::string_view, std::string_view,
                         int64_t, std::string_view, int64_t, int64_t,
                         std::string_view, std::string_view, int64_t>;
  std::map<Key, std::vector<int64_t>> groups;
  for (const auto& c :
       analysis::CollectCollectives(model.tree(), model.context().device)) {
    const trace::DeviceArgs& device = *trace.Device(c.slice);
    if (device.correlation == trace::kNoInt &&
        device.external_id == trace::kNoInt)
      continue;
    if (c.args == nullptr) continue;
    const trace::CollectiveArgs& a = *c.args;
    const bool complete = a.group.valid() && a.group_ranks.valid() &&
                          a.group_size != trace::kNoInt && a.dtype.valid() &&
                          a.in_elements != trace::kNoInt &&
                          a.out_elements != trace::kNoInt &&
                          a.in_split.valid() && a.out_split.valid() &&
                          device.stream != trace::kNoInt;
    if (!complete) continue;
    groups[Key(trace.Text(a.group), trace.Text(a.group_ranks),
               PeerName(trace, c), a.group_size, trace.Text(a.dtype),
               a.in_elements, a.out_elements, trace.Text(a.in_split),
               trace.Text(a.out_split), device.stream)]
        .push_back(trace.Duration(c.slice));
  }
  if (groups.empty()) return;
  const auto text = [](std::string name) {
    return Column{std::move(name), ColumnType::kText, "See docs/tracelens.md."};
  };
  const auto number = [](std::string name) {
    return Column{std::move(name), ColumnType::kReal, "See docs/tracelens.md."};
  };
  const auto count = [](std::string name) {
    return Column{std::move(name), ColumnType::kInt, "See docs/tracelens.md."};
  };
  Table table(
      {"coll_analysis",
       "Communication kernels of this rank.",
       {count("rank"), text("Process Group Name"), text("Process Group Ranks"),
        text("Collective name"), count("Group size"), text("dtype"),
        count("In msg nelems"), count("Out msg nelems"), text("In split size"),
        text("Out split size"), count("stream"),
        number("In msg size (MB)_first"), number("Out msg size (MB)_first"),
        number("dur_sum"), number("dur_mean"), number("dur_std"),
        number("dur_min"), number("dur_max"), count("operation_count")}});
  const int64_t rank = trace.info.rank.value_or(0);
  struct Row {
    const Key* key;
    analysis::Stats stats;
  };
  std::vector<Row> rows;
  for (auto& [key, times] : groups)
    rows.push_back({&key, analysis::Summarize(times)});
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    if (a.stats.sum != b.stats.sum) return a.stats.sum > b.stats.sum;
    return *a.key < *b.key;
  });
  for (const Row& row : rows) {
    const auto& [group, ranks, name, size, dtype, in, out, in_split, out_split,
                 stream] = *row.key;
    const auto bytes = analysis::CollectiveElementBytes(dtype);
    const auto mib = [&](int64_t elements) -> std::optional<double> {
      if (!bytes) return std::nullopt;
      return static_cast<double>(elements) * static_cast<double>(*bytes) / kMiB;
    };
    std::optional<double> std_dev;
    if (row.stats.std_dev) std_dev = *row.stats.std_dev / 1000.0;
    table.Add(rank, group, ranks, name, size, dtype, in, out, in_split,
              out_split, stream, mib(in), mib(out), Us(row.stats.sum),
              row.stats.mean / 1000.0, std_dev, Us(row.stats.min),
              Us(row.stats.max), row.stats.count);
  }
  result.tables.push_back(std::move(table));
}

}  // namespace lamina::compat::tracelens
