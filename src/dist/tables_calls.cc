// SPDX-License-Identifier: Apache-2.0
//
// Tables with a row per collective call, size or link.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "analysis/common/stats.h"
#include "dist/tables.h"
#include "table/row_columns.h"

namespace lamina::dist {
namespace {

using analysis::CollectiveKindName;

// Gigabytes (1e9 bytes) per second are bytes per nanosecond.
std::optional<double> Rate(int64_t bytes, int64_t ns) {
  if (bytes == kNoInt || bytes == 0 || ns <= 0) return std::nullopt;
  return static_cast<double>(bytes) / static_cast<double>(ns);
}

std::optional<double> BusRate(const MeasuredCall& call) {
  const auto rate = Rate(call.bytes, call.transfer_ns);
  const double factor = BusFactor(call.kind, call.ranks);
  if (!rate || factor == 0) return std::nullopt;
  return *rate * factor;
}

struct CallRow {
  size_t id;
  std::string_view group, group_ranks;
  int64_t sequence;
  std::string_view collective, name, dtype;
  int64_t ranks;
  size_t ranks_seen;
  std::optional<int64_t> bytes;
  int64_t start;
  std::optional<int64_t> start_skew, end_skew, transfer, late_rank, early_rank;
  std::optional<double> algbw_gb_s, busbw_gb_s;
  std::string_view cause, cause_name;
  std::optional<int64_t> cause_time;
  std::string_view matched_by;
  std::optional<int64_t> source_rank, destination_rank;
  std::string_view doubt;
};

void AddCalls(const Job& job, const std::vector<const MeasuredCall*>& calls,
              ResultSet& result) {
  const RowColumns<CallRow> columns{
      "collectives",
      "One row per collective, joined over its ranks, on aligned clocks.",
      {{"id", ColumnType::kInt, "Position by start.", &CallRow::id,
        Shown::kHidden},
       {"group", ColumnType::kText, "Process group.", &CallRow::group},
       {"group_ranks", ColumnType::kText, "Its ranks, as recorded.",
        &CallRow::group_ranks, Shown::kHidden},
       {"sequence", ColumnType::kInt,
        "Sequence number; position in the group, or between two peers, where "
        "none was recorded.",
        &CallRow::sequence},
       {"collective", ColumnType::kText, "Kind.", &CallRow::collective},
       {"name", ColumnType::kText, "As the framework calls it.", &CallRow::name,
        Shown::kHidden},
       {"dtype", ColumnType::kText, "Element type.", &CallRow::dtype,
        Shown::kHidden},
       {"ranks", ColumnType::kInt, "Ranks that take part.", &CallRow::ranks},
       {"ranks_seen", ColumnType::kInt, "Of them with a record of this call.",
        &CallRow::ranks_seen, Shown::kHidden},
       {"bytes", ColumnType::kInt,
        "Full message: of all_gather what comes out, else what goes in.",
        &CallRow::bytes, Shown::kBytes},
       {"start_us", ColumnType::kTime,
        "First start on any rank, from the start of the job.", &CallRow::start},
       {"start_skew_us", ColumnType::kTime,
        "From the first to the last rank that starts.", &CallRow::start_skew},
       {"end_skew_us", ColumnType::kTime,
        "From the first to the last rank that ends.", &CallRow::end_skew,
        Shown::kHidden},
       {"transfer_us", ColumnType::kTime,
        "Shortest duration: of the rank that waits least.", &CallRow::transfer},
       {"late_rank", ColumnType::kInt, "Last to start.", &CallRow::late_rank},
       {"early_rank", ColumnType::kInt, "First to start.",
        &CallRow::early_rank},
       {"algbw_gb_s", ColumnType::kReal,
        "Message over transfer time, in 1e9 bytes per second.",
        &CallRow::algbw_gb_s},
       {"busbw_gb_s", ColumnType::kReal,
        "The same in terms of what a link moves.", &CallRow::busbw_gb_s},
       {"cause", ColumnType::kText,
        "Why the late rank was late: compute, launch or previous.",
        &CallRow::cause},
       {"cause_name", ColumnType::kText,
        "Op with the largest excess over the other ranks.",
        &CallRow::cause_name},
       {"cause_us", ColumnType::kTime, "That excess.", &CallRow::cause_time,
        Shown::kHidden},
       {"matched_by", ColumnType::kText,
        "What joined the ranks: sequence, order or peer; none: this record "
        "stands alone.",
        &CallRow::matched_by, Shown::kHidden},
       {"source_rank", ColumnType::kInt, "Of a transfer.",
        &CallRow::source_rank, Shown::kHidden},
       {"destination_rank", ColumnType::kInt, "Of a transfer.",
        &CallRow::destination_rank, Shown::kHidden},
       {"doubt", ColumnType::kText, "What speaks against the match.",
        &CallRow::doubt}}};
  Table table(columns.schema());
  const int64_t origin = OriginOf(job);
  for (size_t i = 0; i < calls.size(); ++i) {
    const MeasuredCall* const call = calls[i];
    const MeasuredGroup& group = job.measured.groups[call->group];
    const bool compared = call->comparable();
    const auto when = [&](int64_t value) {
      return compared ? std::optional(value) : std::nullopt;
    };
    const bool timed = call->doubt.empty();
    const LateRank& late = call->late.front();
    columns.Add(
        table,
        {.id = i,
         .group = group.name,
         .group_ranks = group.ranks,
         .sequence = call->sequence,
         .collective = CollectiveKindName(call->kind),
         .name = call->name,
         .dtype = call->dtype,
         .ranks = call->ranks,
         .ranks_seen = call->members.size(),
         .bytes = Number(call->bytes),
         .start = call->start_ns - origin,
         .start_skew = when(call->start_skew_ns),
         .end_skew = when(call->end_skew_ns),
         .transfer = timed ? std::optional(call->transfer_ns) : std::nullopt,
         .late_rank = when(call->late_rank),
         .early_rank = when(call->early_rank),
         .algbw_gb_s =
             timed ? Rate(call->bytes, call->transfer_ns) : std::nullopt,
         .busbw_gb_s = timed ? BusRate(*call) : std::nullopt,
         .cause = CauseName(late.cause),
         .cause_name = late.cause_name,
         .cause_time = late.cause == Cause::kNone
                           ? std::nullopt
                           : std::optional(late.cause_ns),
         .matched_by = MatchedByName(call->by),
         .source_rank = Number(call->source),
         .destination_rank = Number(call->destination),
         .doubt = call->doubt});
  }
  result.tables.push_back(std::move(table));
}

struct WaitRow {
  size_t id;
  std::string_view group;
  int64_t sequence;
  std::string_view collective;
  int64_t rank, start, dur;
  std::optional<int64_t> wait;
};

void AddWaits(const Job& job, const std::vector<const MeasuredCall*>& calls,
              ResultSet& result) {
  const RowColumns<WaitRow> columns{
      "collective_waits",
      "One row per collective and rank.",
      {{"id", ColumnType::kInt, "As in collectives.", &WaitRow::id},
       {"group", ColumnType::kText, "Process group.", &WaitRow::group},
       {"sequence", ColumnType::kInt, "As in collectives.", &WaitRow::sequence},
       {"collective", ColumnType::kText, "Kind.", &WaitRow::collective},
       {"rank", ColumnType::kInt, "Rank.", &WaitRow::rank},
       {"start_us", ColumnType::kTime,
        "Aligned start, from the start of the job.", &WaitRow::start},
       {"dur_us", ColumnType::kTime, "Duration.", &WaitRow::dur},
       {"wait_us", ColumnType::kTime,
        "From its start to that of the last rank, at most dur_us.",
        &WaitRow::wait}}};
  Table table(columns.schema());
  const int64_t origin = OriginOf(job);
  for (size_t i = 0; i < calls.size(); ++i) {
    const MeasuredCall* const call = calls[i];
    for (const MeasuredMember& m : call->members) {
      columns.Add(table, {.id = i,
                          .group = job.measured.groups[call->group].name,
                          .sequence = call->sequence,
                          .collective = CollectiveKindName(call->kind),
                          .rank = m.rank,
                          .start = m.start_ns - origin,
                          .dur = m.dur_ns,
                          .wait = call->comparable() ? std::optional(m.wait_ns)
                                                     : std::nullopt});
    }
  }
  result.tables.push_back(std::move(table));
}

struct Distribution {
  std::optional<double> mean, p50, p99;
};

Distribution Describe(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  // A fixed order of additions: sorted.
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const size_t rank =
      std::min(n - 1, static_cast<size_t>((99 * n + 99) / 100 - 1));
  return {sum / static_cast<double>(n),
          (values[(n - 1) / 2] + values[n / 2]) / 2, values[rank]};
}

struct SizeRow {
  std::string_view group, group_description, collective, dtype;
  int64_t ranks;
  std::optional<int64_t> bytes;
  size_t count;
  int64_t total_transfer, mean_transfer, p50_transfer, p99_transfer;
  std::optional<int64_t> mean_start_skew, p50_start_skew, p99_start_skew;
  std::optional<double> mean_busbw_gb_s, p50_busbw_gb_s, p99_busbw_gb_s;
};

void AddSizes(const Job& job, ResultSet& result) {
  const RowColumns<SizeRow> columns{
      "collective_sizes",
      "Collectives by group, kind and size; the worst 1 % is at p99.",
      {{"group", ColumnType::kText, "Process group.", &SizeRow::group},
       {"group_description", ColumnType::kText, "Its description.",
        &SizeRow::group_description},
       {"collective", ColumnType::kText, "Kind.", &SizeRow::collective},
       {"dtype", ColumnType::kText, "Element type.", &SizeRow::dtype,
        Shown::kHidden},
       {"ranks", ColumnType::kInt, "Ranks that take part.", &SizeRow::ranks},
       {"bytes", ColumnType::kInt, "Full message.", &SizeRow::bytes,
        Shown::kBytes},
       {"count", ColumnType::kInt, "Collectives.", &SizeRow::count},
       {"total_transfer_us", ColumnType::kTime, "Sum of transfers.",
        &SizeRow::total_transfer},
       {"mean_transfer_us", ColumnType::kTime, "Mean.", &SizeRow::mean_transfer,
        Shown::kHidden},
       {"p50_transfer_us", ColumnType::kTime, "Median.",
        &SizeRow::p50_transfer},
       {"p99_transfer_us", ColumnType::kTime, "Nearest rank.",
        &SizeRow::p99_transfer, Shown::kHidden},
       {"mean_start_skew_us", ColumnType::kTime, "Mean.",
        &SizeRow::mean_start_skew, Shown::kHidden},
       {"p50_start_skew_us", ColumnType::kTime, "Median.",
        &SizeRow::p50_start_skew, Shown::kHidden},
       {"p99_start_skew_us", ColumnType::kTime, "Nearest rank.",
        &SizeRow::p99_start_skew},
       {"mean_busbw_gb_s", ColumnType::kReal, "Mean.",
        &SizeRow::mean_busbw_gb_s, Shown::kHidden},
       {"p50_busbw_gb_s", ColumnType::kReal, "Median.",
        &SizeRow::p50_busbw_gb_s},
       {"p99_busbw_gb_s", ColumnType::kReal, "Nearest rank.",
        &SizeRow::p99_busbw_gb_s, Shown::kHidden}}};
  Table table(columns.schema());
  using Key =
      std::tuple<uint64_t, CollectiveKind, std::string_view, int64_t, int64_t>;
  struct Sums {
    std::vector<int64_t> transfer, skew;
    std::vector<double> rate;
  };
  std::map<Key, Sums> sizes;
  for (const MeasuredCall& call : job.measured.calls) {
    if (!call.doubt.empty()) continue;
    Sums& sums =
        sizes[Key{call.group, call.kind, call.dtype, call.ranks, call.bytes}];
    sums.transfer.push_back(call.transfer_ns);
    if (call.comparable()) sums.skew.push_back(call.start_skew_ns);
    if (const auto rate = BusRate(call)) sums.rate.push_back(*rate);
  }
  struct Row {
    const Key* key;
    Sums* sums;
    analysis::Stats transfer;
  };
  std::vector<Row> rows;
  for (auto& [key, sums] : sizes)
    rows.push_back({&key, &sums, analysis::Summarize(sums.transfer)});
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.transfer.sum > b.transfer.sum;
  });
  for (const Row& row : rows) {
    const auto& [group, kind, dtype, ranks, bytes] = *row.key;
    const MeasuredGroup& g = job.measured.groups[group];
    const analysis::Stats skew = analysis::Summarize(row.sums->skew);
    const auto when = [&](int64_t value) {
      return skew.count > 0 ? std::optional(value) : std::nullopt;
    };
    const Distribution rate = Describe(std::move(row.sums->rate));
    columns.Add(table, {.group = g.name,
                        .group_description = g.description,
                        .collective = CollectiveKindName(kind),
                        .dtype = dtype,
                        .ranks = ranks,
                        .bytes = Number(bytes),
                        .count = row.transfer.count,
                        .total_transfer = row.transfer.sum,
                        .mean_transfer = analysis::RoundNs(row.transfer.mean),
                        .p50_transfer = analysis::RoundNs(row.transfer.median),
                        .p99_transfer = row.transfer.p99,
                        .mean_start_skew = when(analysis::RoundNs(skew.mean)),
                        .p50_start_skew = when(analysis::RoundNs(skew.median)),
                        .p99_start_skew = when(skew.p99),
                        .mean_busbw_gb_s = rate.mean,
                        .p50_busbw_gb_s = rate.p50,
                        .p99_busbw_gb_s = rate.p99});
  }
  result.tables.push_back(std::move(table));
}

struct AllToAllRow {
  std::string_view group;
  int64_t sequence, ranks, total_bytes, wall;
  std::optional<double> throughput_gb_s, size_imbalance;
  int64_t largest_rank, largest_bytes;
};

struct TrafficRow {
  std::string_view group;
  int64_t source_rank, destination_rank, bytes, calls;
};

void AddAllToAll(const Job& job, const std::vector<const MeasuredCall*>& calls,
                 ResultSet& result) {
  const RowColumns<AllToAllRow> columns{
      "all_to_all",
      "How evenly all-to-all collectives share out their data.",
      {{"group", ColumnType::kText, "Process group.", &AllToAllRow::group},
       {"sequence", ColumnType::kInt, "As in collectives.",
        &AllToAllRow::sequence},
       {"ranks", ColumnType::kInt, "Ranks that take part.",
        &AllToAllRow::ranks},
       {"total_bytes", ColumnType::kInt, "That all recorded ranks put in.",
        &AllToAllRow::total_bytes, Shown::kBytes},
       {"wall_us", ColumnType::kTime, "From first start to last end.",
        &AllToAllRow::wall},
       {"throughput_gb_s", ColumnType::kReal,
        "Total over wall time, in 1e9 bytes per second.",
        &AllToAllRow::throughput_gb_s},
       {"size_imbalance", ColumnType::kReal,
        "Largest over mean of what ranks put in; 1 is even.",
        &AllToAllRow::size_imbalance},
       {"largest_rank", ColumnType::kInt, "Rank that puts in most.",
        &AllToAllRow::largest_rank},
       {"largest_bytes", ColumnType::kInt, "What it puts in.",
        &AllToAllRow::largest_bytes, Shown::kBytes}}};
  Table table(columns.schema());
  for (const MeasuredCall* call : calls) {
    if (call->kind != CollectiveKind::kAllToAll || !call->doubt.empty())
      continue;
    double total = 0;
    int64_t known = 0;
    const MeasuredMember* largest = nullptr;
    int64_t last_end = INT64_MIN;
    for (const MeasuredMember& m : call->members) {
      last_end = std::max(last_end, m.start_ns + m.dur_ns);
      if (m.in_bytes == kNoInt) continue;
      ++known;
      total += static_cast<double>(m.in_bytes);
      if (largest == nullptr || m.in_bytes > largest->in_bytes) largest = &m;
    }
    if (largest == nullptr) continue;
    const int64_t wall = last_end - call->start_ns;
    std::optional<double> rate, imbalance;
    if (wall > 0) rate = total / static_cast<double>(wall);
    if (total > 0)
      imbalance = static_cast<double>(largest->in_bytes) *
                  static_cast<double>(known) / total;
    columns.Add(table, {.group = job.measured.groups[call->group].name,
                        .sequence = call->sequence,
                        .ranks = call->ranks,
                        .total_bytes = static_cast<int64_t>(total),
                        .wall = wall,
                        .throughput_gb_s = rate,
                        .size_imbalance = imbalance,
                        .largest_rank = largest->rank,
                        .largest_bytes = largest->in_bytes});
  }
  result.tables.push_back(std::move(table));

  const RowColumns<TrafficRow> traffic_columns{
      "all_to_all_traffic",
      "Bytes from rank to rank in all-to-all collectives.",
      {{"group", ColumnType::kText, "Process group.", &TrafficRow::group},
       {"source_rank", ColumnType::kInt, "From.", &TrafficRow::source_rank},
       {"destination_rank", ColumnType::kInt, "To.",
        &TrafficRow::destination_rank},
       {"bytes", ColumnType::kInt, "Sum.", &TrafficRow::bytes, Shown::kBytes},
       {"calls", ColumnType::kInt, "Collectives.", &TrafficRow::calls}}};
  Table traffic(traffic_columns.schema());
  for (const Traffic& t : job.measured.traffic) {
    traffic_columns.Add(traffic, {.group = job.measured.groups[t.group].name,
                                  .source_rank = t.source,
                                  .destination_rank = t.destination,
                                  .bytes = t.bytes,
                                  .calls = t.calls});
  }
  result.tables.push_back(std::move(traffic));
}

struct LostRow {
  std::string_view group;
  int64_t sequence;
  std::string_view collective;
  int64_t rank;
  std::string_view place;
};

void AddLost(const Job& job, ResultSet& result) {
  const RowColumns<LostRow> columns{
      "lost_calls",
      "Collectives that other ranks of the group recorded.",
      {{"group", ColumnType::kText, "Process group.", &LostRow::group},
       {"sequence", ColumnType::kInt, "As in collectives.", &LostRow::sequence},
       {"collective", ColumnType::kText, "Kind.", &LostRow::collective},
       {"rank", ColumnType::kInt, "Rank without a record of it.",
        &LostRow::rank},
       {"place", ColumnType::kText,
        "inside: calls before and after it were recorded, so the "
        "event was lost; edge: the recording may have begun later or "
        "ended earlier.",
        &LostRow::place}}};
  Table table(columns.schema());
  for (const MeasuredLoss& lost : job.measured.lost) {
    columns.Add(table, {.group = job.measured.groups[lost.group].name,
                        .sequence = lost.sequence,
                        .collective = CollectiveKindName(lost.kind),
                        .rank = lost.rank,
                        .place = lost.inside ? "inside" : "edge"});
  }
  result.tables.push_back(std::move(table));
}

struct LinkRow {
  std::string_view groups, collective;
  int64_t ranks;
  size_t sizes;
  uint64_t count;
  int64_t smallest_bytes, largest_bytes, latency;
  double busbw_gb_s;
};

}  // namespace

// By aligned start; the group and sequence decide between equals.
std::vector<const MeasuredCall*> CallsByStart(const Measured& measured) {
  std::vector<const MeasuredCall*> calls;
  for (const MeasuredCall& call : measured.calls) calls.push_back(&call);
  std::stable_sort(calls.begin(), calls.end(),
                   [](const auto* a, const auto* b) {
                     return std::tie(a->start_ns, a->group, a->sequence) <
                            std::tie(b->start_ns, b->group, b->sequence);
                   });
  return calls;
}

void AddLinkTable(const std::vector<LinkSeries>& links, ResultSet& result) {
  const RowColumns<LinkRow> columns{
      "bandwidth_model",
      "Transfer time as latency + bytes / bandwidth, where sizes differ.",
      {{"groups", ColumnType::kText, "Description of the groups.",
        &LinkRow::groups},
       {"collective", ColumnType::kText, "Kind.", &LinkRow::collective},
       {"ranks", ColumnType::kInt, "Ranks that take part.", &LinkRow::ranks},
       {"sizes", ColumnType::kInt, "Different sizes.", &LinkRow::sizes},
       {"count", ColumnType::kInt, "Collectives.", &LinkRow::count},
       {"smallest_bytes", ColumnType::kInt, "Of the sizes.",
        &LinkRow::smallest_bytes, Shown::kBytes},
       {"largest_bytes", ColumnType::kInt, "Of the sizes.",
        &LinkRow::largest_bytes, Shown::kBytes},
       {"latency_us", ColumnType::kTime, "Of an empty message.",
        &LinkRow::latency},
       {"busbw_gb_s", ColumnType::kReal,
        "Bus bandwidth of a long message, in 1e9 bytes per second.",
        &LinkRow::busbw_gb_s}}};
  Table table(columns.schema());
  for (const LinkSeries& s : links) {
    if (!(s.bytes_per_ns > 0)) continue;
    uint64_t calls = 0;
    for (const LinkSize& size : s.sizes) calls += size.calls;
    columns.Add(table, {.groups = s.description,
                        .collective = CollectiveKindName(s.kind),
                        .ranks = s.ranks,
                        .sizes = s.sizes.size(),
                        .count = calls,
                        .smallest_bytes = s.sizes.front().bytes,
                        .largest_bytes = s.sizes.back().bytes,
                        .latency = analysis::RoundNs(s.latency_ns),
                        .busbw_gb_s = s.bytes_per_ns});
  }
  result.tables.push_back(std::move(table));
}

void AddCallTables(const Job& job, ResultSet& result) {
  const auto calls = CallsByStart(job.measured);
  AddCalls(job, calls, result);
  AddWaits(job, calls, result);
  AddSizes(job, result);
  AddAllToAll(job, calls, result);
  AddLost(job, result);
}

}  // namespace lamina::dist
