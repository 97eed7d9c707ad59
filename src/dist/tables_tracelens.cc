// SPDX-License-Identifier: Apache-2.0
//
// The sheets of TraceLens for many ranks. Names, units, rows and their order
// are the peer's; what is joined with what, and the clocks, are lamina's. In
// one file, because every sheet is a few lines over the same calls.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "base/text.h"
#include "dist/tables.h"

namespace lamina::dist {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kGiB = kMiB * 1024.0;

Column Text(std::string name) {
  return {std::move(name), ColumnType::kText, "See docs/tracelens.md."};
}
Column Count(std::string name) {
  return {std::move(name), ColumnType::kInt, "See docs/tracelens.md."};
}
Column Number(std::string name) {
  return {std::move(name), ColumnType::kReal, "See docs/tracelens.md."};
}

double Us(int64_t ns) { return static_cast<double>(ns) / 1000.0; }

std::optional<double> MiB(int64_t elements, std::string_view dtype) {
  const auto bytes = analysis::CollectiveElementBytes(dtype);
  if (!bytes || elements == kNoInt) return std::nullopt;
  return static_cast<double>(elements) * static_cast<double>(*bytes) / kMiB;
}

// Ranks by node, by the number of devices that a recording describes; 0: not
// known, and there are no columns of nodes.
int64_t RanksPerNode(const Job& job) {
  for (const RankSummary& rank : job.ranks) {
    if (rank.error.empty()) return rank.devices;
  }
  return 0;
}

void AddNodeColumns(const Job& job, bool of_rank, Schema& schema) {
  if (RanksPerNode(job) == 0) return;
  if (of_rank) schema.columns.push_back(Count("node_id"));
  schema.columns.push_back(Text("node_span"));
}

// `rank` is kNoInt in sheets that have none. What is appended stays valid.
void AppendNode(const Job& job, int64_t rank, std::string_view group_ranks,
                std::vector<Value>& row) {
  const int64_t per_node = RanksPerNode(job);
  if (per_node == 0) return;
  if (rank != kNoInt) row.push_back(rank / per_node);
  std::set<int64_t> nodes;
  for (const int64_t r : ParseRanks(group_ranks)) nodes.insert(r / per_node);
  row.push_back(nodes.empty()       ? "unknown"
                : nodes.size() == 1 ? "intra_node"
                                    : "inter_node");
}

void AddSummaryLong(const Job& job, ResultSet& result) {
  Schema schema(
      {"nccl_summary_long",
       "Communication kernels of every rank.",
       {Count("rank"), Text("Process Group Name"), Text("Process Group Ranks"),
        Text("Collective name"), Count("Group size"), Text("dtype"),
        Count("In msg nelems"), Count("Out msg nelems"), Text("In split size"),
        Text("Out split size"), Count("stream"),
        Number("In msg size (MB)_first"), Number("Out msg size (MB)_first"),
        Number("dur_sum"), Number("dur_mean"), Number("dur_std"),
        Number("dur_min"), Number("dur_max"), Count("operation_count")}});
  AddNodeColumns(job, true, schema);
  Table table(std::move(schema));
  struct Line {
    const RankSummary* rank;
    const CallStats* stats;
  };
  std::vector<Line> lines;
  for (const RankSummary& rank : job.ranks) {
    if (!rank.error.empty()) continue;
    for (const CallStats& s : rank.stats) lines.push_back({&rank, &s});
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) {
                     return a.stats->sum_ns > b.stats->sum_ns;
                   });
  for (const auto& [of, stats] : lines) {
    const RankSummary& rank = *of;
    const CallStats& s = *stats;
    const std::string_view dtype = rank.Text(s.dtype);
    std::optional<double> deviation;
    if (s.deviation_ns >= 0) deviation = s.deviation_ns / 1000.0;
    std::vector<Value> row = {rank.rank,
                              rank.Text(s.group),
                              rank.Text(s.ranks),
                              rank.Text(s.name),
                              s.size,
                              dtype,
                              s.in_elements,
                              s.out_elements,
                              rank.Text(s.in_split),
                              rank.Text(s.out_split),
                              s.stream,
                              MiB(s.in_elements, dtype),
                              MiB(s.out_elements, dtype),
                              Us(s.sum_ns),
                              s.mean_ns / 1000.0,
                              deviation,
                              Us(s.min_ns),
                              Us(s.max_ns),
                              s.count};
    AppendNode(job, rank.rank, rank.Text(s.ranks), row);
    table.AddRow(row);
  }
  result.tables.push_back(std::move(table));
}

// nccl_long: every call of every rank as it was recorded.
void AddLong(const Job& job, ResultSet& result) {
  Schema schema({"nccl_long",
                 "One row per collective and rank.",
                 {Text("collective_id"), Count("index_in_group"), Count("rank"),
                  Text("Process Group Name"), Text("Process Group Ranks"),
                  Text("Collective name"), Count("Group size"), Text("dtype"),
                  Count("In msg nelems"), Number("In msg size (MB)"),
                  Count("Out msg nelems"), Number("Out msg size (MB)"),
                  Text("In split size"), Text("Out split size"),
                  Count("stream"), Number("ts"), Number("dur")}});
  AddNodeColumns(job, true, schema);
  Table table(std::move(schema));
  struct Line {
    const MeasuredCall* call;
    const MeasuredMember* member;
    size_t index = 0;  // among the calls of its group and rank
  };
  std::vector<Line> lines;
  for (const MeasuredCall& call : job.measured.calls) {
    for (const MeasuredMember& m : call.members) lines.push_back({&call, &m});
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) {
                     return std::tie(a.member->rank, a.member->file_ns) <
                            std::tie(b.member->rank, b.member->file_ns);
                   });
  std::map<std::pair<uint64_t, int64_t>, size_t> counts;
  for (Line& line : lines)
    line.index = counts[{line.call->group, line.member->rank}]++;
  const auto known = [](int64_t value) {
    return value == kNoInt ? Value() : Value(value);
  };
  for (const Line& line : lines) {
    const MeasuredCall& call = *line.call;
    const MeasuredMember& m = *line.member;
    const MeasuredGroup& group = job.measured.groups[call.group];
    const std::string id = group.name + "_" + std::to_string(line.index);
    std::vector<Value> row = {id,
                              line.index,
                              m.rank,
                              group.name,
                              group.ranks,
                              call.name,
                              call.ranks,
                              call.dtype,
                              known(m.in_elements),
                              MiB(m.in_elements, call.dtype),
                              known(m.out_elements),
                              MiB(m.out_elements, call.dtype),
                              m.in_split,
                              m.out_split,
                              known(m.stream),
                              Us(m.file_ns),
                              Us(m.dur_ns)};
    AppendNode(job, m.rank, group.ranks, row);
    table.AddRow(row);
  }
  if (table.rows() > 0) result.tables.push_back(std::move(table));
}

bool IsUneven(const MeasuredCall& call) {
  return call.kind == CollectiveKind::kAllToAll &&
         (call.name.ends_with("v") || Contains(call.name, "allv"));
}

// Calls of a group by start, with their number in it.
struct Numbered {
  const MeasuredCall* call = nullptr;
  std::string id;
};

std::vector<Numbered> NumberCalls(const Job& job, bool uneven) {
  std::vector<const MeasuredCall*> calls;
  for (const MeasuredCall& call : job.measured.calls) {
    if (Synchronises(call.kind) && call.comparable() &&
        IsUneven(call) == uneven)
      calls.push_back(&call);
  }
  std::stable_sort(calls.begin(), calls.end(), [](auto* a, auto* b) {
    return std::tie(a->group, a->start_ns, a->sequence) <
           std::tie(b->group, b->start_ns, b->sequence);
  });
  std::vector<Numbered> out;
  std::map<uint64_t, size_t> counts;
  for (const MeasuredCall* call : calls) {
    out.push_back({call, job.measured.groups[call->group].name + "_" +
                             std::to_string(counts[call->group]++)});
  }
  return out;
}

struct Rates {
  std::optional<double> full_mib, algorithm, bus;  // GiB/s
};

Rates RatesOf(const MeasuredCall& call) {
  Rates rates;
  if (call.bytes == kNoInt) return rates;
  rates.full_mib = static_cast<double>(call.bytes) / kMiB;
  if (call.transfer_ns > 0) {
    rates.algorithm = static_cast<double>(call.bytes) / kGiB /
                      (static_cast<double>(call.transfer_ns) / 1e9);
    rates.bus = *rates.algorithm * BusFactor(call.kind, call.ranks);
  }
  return rates;
}

void AddImplicitSync(const Job& job, const std::vector<Numbered>& calls,
                     ResultSet& result) {
  std::set<int64_t> ranks;
  for (const Numbered& n : calls) {
    for (const MeasuredMember& m : n.call->members) ranks.insert(m.rank);
  }
  std::vector<Column> columns = {
      Text("collective_id"),        Text("Process Group Name"),
      Text("Process Group Ranks"),  Text("Collective name"),
      Count("Group size"),          Text("dtype"),
      Count("In msg nelems"),       Count("Out msg nelems"),
      Number("In msg size (MB)"),   Number("Out msg size (MB)"),
      Number("Full msg size (MB)"), Number("comm_latency"),
      Number("skew in start time"), Count("earliest arrival rank"),
      Number("avg_wait_time"),      Number("skew in end time"),
      Number("algo bw (GB/s)"),     Number("bus bw (GB/s)")};
  for (const int64_t r : ranks) {
    const std::string name = "rank_" + std::to_string(r);
    columns.push_back(Number(name + "_ts"));
    columns.push_back(Number(name + "_dur"));
    columns.push_back(Number(name + "_wait_time"));
  }
  Schema schema{"nccl_implicit_sync",
                "One row per collective that all ranks leave together.",
                std::move(columns)};
  AddNodeColumns(job, false, schema);
  Table table(std::move(schema));
  for (const Numbered& n : calls) {
    const MeasuredCall& call = *n.call;
    const MeasuredGroup& group = job.measured.groups[call.group];
    const Rates rates = RatesOf(call);
    const auto known = [](int64_t value) {
      return value == kNoInt ? Value() : Value(value);
    };
    std::vector<Value> row = {
        n.id,
        group.name,
        group.ranks,
        call.name,
        call.ranks,
        call.dtype,
        known(call.in_elements),
        known(call.out_elements),
        MiB(call.in_elements, call.dtype),
        MiB(call.out_elements, call.dtype),
        rates.full_mib,
        Us(call.transfer_ns),
        Us(call.start_skew_ns),
        call.early_rank,
        Us(call.wait_ns) / static_cast<double>(call.members.size()),
        Us(call.end_skew_ns),
        rates.algorithm,
        rates.bus};
    auto member = call.members.begin();
    for (const int64_t r : ranks) {
      if (member != call.members.end() && member->rank == r) {
        row.insert(row.end(), {Us(member->file_ns), Us(member->dur_ns),
                               Us(member->wait_ns)});
        ++member;
      } else {
        row.insert(row.end(), 3, Value());
      }
    }
    AppendNode(job, kNoInt, group.ranks, row);
    table.AddRow(row);
  }
  result.tables.push_back(std::move(table));
}

// Mean, median, least and most, as cells.
void AppendStatistics(std::vector<double> values, std::vector<Value>& row) {
  if (values.empty()) {
    row.insert(row.end(), 4, Value());
    return;
  }
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  row.insert(row.end(), {std::accumulate(values.begin(), values.end(), 0.0) /
                             static_cast<double>(n),
                         (values[(n - 1) / 2] + values[n / 2]) / 2,
                         values.front(), values.back()});
}

void AddSyncSummary(const Job& job, const std::vector<Numbered>& calls,
                    ResultSet& result) {
  std::vector<Column> columns = {
      Text("Collective name"), Text("dtype"),
      Count("In msg nelems"),  Text("Process Group Name"),
      Count("Group size"),     Number("Full msg size (MB)")};
  for (const char* what :
       {"comm_latency", "skew in start time", "skew in end time",
        "algo bw (GB/s)", "bus bw (GB/s)"}) {
    for (const char* how : {"mean", "median", "min", "max"})
      columns.push_back(Number(std::string(what) + "_" + how));
  }
  columns.push_back(Count("count"));
  columns.push_back(Number("Total comm latency (ms)"));
  Table table({"nccl_summary_implicit_sync",
               "Those collectives by kind, size and group.",
               std::move(columns)});
  // A row is of one group, so that sizes and rates are of one kind of call;
  // TraceLens joins groups whose calls have equal names and sizes.
  using Key = std::tuple<std::string_view, std::string_view, int64_t,
                         std::string_view, int64_t>;
  std::map<Key, std::vector<const MeasuredCall*>> groups;
  for (const Numbered& n : calls) {
    groups[Key{n.call->name, n.call->dtype, n.call->in_elements,
               job.measured.groups[n.call->group].name, n.call->ranks}]
        .push_back(n.call);
  }
  const auto time_of = [](const std::vector<const MeasuredCall*>& members) {
    int64_t sum_ns = 0;
    for (const MeasuredCall* call : members) sum_ns += call->transfer_ns;
    return sum_ns;
  };
  std::vector<std::pair<Key, std::vector<const MeasuredCall*>>> order(
      groups.begin(), groups.end());
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto& a, const auto& b) {
                     return time_of(a.second) > time_of(b.second);
                   });
  for (const auto& [key, members] : order) {
    std::vector<double> latency, start, end, algorithm, bus;
    int64_t total = 0;
    for (const MeasuredCall* call : members) {
      total += call->transfer_ns;
      latency.push_back(Us(call->transfer_ns));
      start.push_back(Us(call->start_skew_ns));
      end.push_back(Us(call->end_skew_ns));
      const Rates rates = RatesOf(*call);
      if (rates.algorithm) algorithm.push_back(*rates.algorithm);
      if (rates.bus) bus.push_back(*rates.bus);
    }
    const auto& [name, dtype, elements, group, size] = key;
    std::vector<Value> row = {
        name,  dtype, elements == kNoInt ? Value() : Value(elements),
        group, size,  RatesOf(*members.front()).full_mib};
    for (auto* values : {&latency, &start, &end, &algorithm, &bus})
      AppendStatistics(std::move(*values), row);
    row.push_back(members.size());
    row.push_back(static_cast<double>(total) / 1e6);
    table.AddRow(row);
  }
  result.tables.push_back(std::move(table));
}

void AddUneven(const Job& job, const std::vector<Numbered>& calls,
               ResultSet& result) {
  Table table({"nccl_all2allv",
               "One row per all_to_allv.",
               {Text("collective_id"), Text("Process Group Name"),
                Text("Process Group Ranks"), Text("Collective name"),
                Count("Group size"), Text("dtype"),
                Number("total data communicated (MB)"),
                Number("wall_time (us)"), Number("max_rank_dur (us)"),
                Number("min_rank_dur (us)"), Number("avg_rank_dur (us)"),
                Number("throughput (GB/s)"), Number("size_imbalance"),
                Number("skew in start time"), Number("skew in end time")}});
  for (const Numbered& n : calls) {
    const MeasuredCall& call = *n.call;
    double total = 0;
    double most = 0;
    int64_t last = INT64_MIN;
    int64_t longest = 0;
    int64_t sum = 0;
    for (const MeasuredMember& m : call.members) {
      const double bytes =
          m.in_bytes == kNoInt ? 0 : static_cast<double>(m.in_bytes);
      total += bytes;
      most = std::max(most, bytes);
      last = std::max(last, m.start_ns + m.dur_ns);
      longest = std::max(longest, m.dur_ns);
      sum += m.dur_ns;
    }
    const int64_t wall = last - call.start_ns;
    const auto members = static_cast<double>(call.members.size());
    std::optional<double> rate, imbalance;
    if (wall > 0) rate = total / kGiB / (static_cast<double>(wall) / 1e9);
    if (total > 0) imbalance = most * members / total;
    const MeasuredGroup& group = job.measured.groups[call.group];
    table.Add(n.id, group.name, group.ranks, call.name, call.ranks, call.dtype,
              total / kMiB, Us(wall), Us(longest), Us(call.transfer_ns),
              Us(sum) / members, rate, imbalance, Us(call.start_skew_ns),
              Us(call.end_skew_ns));
  }
  if (table.rows() > 0) result.tables.push_back(std::move(table));
  Table heat({"nccl_all2allv_heatmap",
              "Bytes from rank to rank.",
              {Count("source rank"), Count("destination rank"), Count("bytes"),
               Count("count")}});
  std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>> sums;
  for (const Traffic& t : job.measured.traffic) {
    auto& sum = sums[{t.source, t.destination}];
    sum.first += t.bytes;
    sum.second += t.calls;
  }
  for (const auto& [pair, sum] : sums)
    heat.Add(pair.first, pair.second, sum.first, sum.second);
  if (heat.rows() > 0) result.tables.push_back(std::move(heat));
}

void AddStragglerSummary(const Job& job, const std::vector<RankBlame>& blame,
                         ResultSet& result) {
  Table table({"straggler_summary",
               "Waits of every rank, least first.",
               {Count("rank"), Number("total_wait_time_us"),
                Number("mean_wait_time_us"), Count("times_arrived_last"),
                Count("times_arrived_first"), Number("pct_arrived_last"),
                Count("num_collectives"), Number("total_nccl_dur_us")}});
  std::map<int64_t, int64_t> durations;
  for (const MeasuredCall& call : job.measured.calls) {
    for (const MeasuredMember& m : call.members) durations[m.rank] += m.dur_ns;
  }
  std::vector<const RankBlame*> order;
  for (const RankBlame& b : blame) order.push_back(&b);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return std::tie(a->wait_ns, a->rank) < std::tie(b->wait_ns, b->rank);
  });
  const auto tenth = [](double us) { return std::round(us * 10) / 10; };
  for (const RankBlame* b : order) {
    const auto calls = static_cast<double>(std::max<int64_t>(b->calls, 1));
    table.Add(b->rank, tenth(Us(b->wait_ns)), tenth(Us(b->wait_ns) / calls),
              b->times_last, b->times_first,
              tenth(100.0 * static_cast<double>(b->times_last) / calls),
              b->calls, tenth(Us(durations[b->rank])));
  }
  result.tables.push_back(std::move(table));
}

}  // namespace

void AddTracelensTables(const Job& job, const std::vector<RankBlame>& blame,
                        ResultSet& result) {
  const auto even = NumberCalls(job, false);
  AddSyncSummary(job, even, result);
  AddSummaryLong(job, result);
  AddLong(job, result);
  AddImplicitSync(job, even, result);
  AddUneven(job, NumberCalls(job, true), result);
  AddStragglerSummary(job, blame, result);
}

}  // namespace lamina::dist
