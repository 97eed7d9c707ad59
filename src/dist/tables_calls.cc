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

void AddCalls(const Job& job, const std::vector<const MeasuredCall*>& calls,
              ResultSet& result) {
  Table table(
      {"collectives",
       "One row per collective, joined over its ranks, on aligned clocks.",
       {{"id", ColumnType::kInt, "Position by start.", Shown::kHidden},
        {"group", ColumnType::kText, "Process group."},
        {"group_ranks", ColumnType::kText, "Its ranks, as recorded.",
         Shown::kHidden},
        {"sequence", ColumnType::kInt,
         "Sequence number; position in the group, or between two peers, where "
         "none was recorded."},
        {"collective", ColumnType::kText, "Kind."},
        {"name", ColumnType::kText, "As the framework calls it.",
         Shown::kHidden},
        {"dtype", ColumnType::kText, "Element type.", Shown::kHidden},
        {"ranks", ColumnType::kInt, "Ranks that take part."},
        {"ranks_seen", ColumnType::kInt, "Of them with a record of this call.",
         Shown::kHidden},
        {"bytes", ColumnType::kInt,
         "Full message: of all_gather what comes out, else what goes in.",
         Shown::kBytes},
        {"start_us", ColumnType::kTime,
         "First start on any rank, from the start of the job."},
        {"start_skew_us", ColumnType::kTime,
         "From the first to the last rank that starts."},
        {"end_skew_us", ColumnType::kTime,
         "From the first to the last rank that ends.", Shown::kHidden},
        {"transfer_us", ColumnType::kTime,
         "Shortest duration: of the rank that waits least."},
        {"late_rank", ColumnType::kInt, "Last to start."},
        {"early_rank", ColumnType::kInt, "First to start."},
        {"algbw_gb_s", ColumnType::kReal,
         "Message over transfer time, in 1e9 bytes per second."},
        {"busbw_gb_s", ColumnType::kReal,
         "The same in terms of what a link moves."},
        {"cause", ColumnType::kText,
         "Why the late rank was late: compute, launch or previous."},
        {"cause_name", ColumnType::kText,
         "Op with the largest excess over the other ranks."},
        {"cause_us", ColumnType::kTime, "That excess.", Shown::kHidden},
        {"matched_by", ColumnType::kText,
         "What joined the ranks: sequence, order or peer; none: this record "
         "stands alone.",
         Shown::kHidden},
        {"source_rank", ColumnType::kInt, "Of a transfer.", Shown::kHidden},
        {"destination_rank", ColumnType::kInt, "Of a transfer.",
         Shown::kHidden},
        {"doubt", ColumnType::kText, "What speaks against the match."}}});
  const int64_t origin = OriginOf(job);
  for (size_t i = 0; i < calls.size(); ++i) {
    const MeasuredCall* const call = calls[i];
    const MeasuredGroup& group = job.measured.groups[call->group];
    const bool compared = call->comparable();
    const auto when = [&](int64_t value) {
      return compared ? Value(value) : Value();
    };
    const bool timed = call->doubt.empty();
    const LateRank& late = call->late.front();
    table.Add(i, group.name, group.ranks, call->sequence,
              CollectiveKindName(call->kind), call->name, call->dtype,
              call->ranks, call->members.size(), Number(call->bytes),
              call->start_ns - origin, when(call->start_skew_ns),
              when(call->end_skew_ns),
              timed ? Value(call->transfer_ns) : Value(), when(call->late_rank),
              when(call->early_rank),
              timed ? Rate(call->bytes, call->transfer_ns) : std::nullopt,
              timed ? BusRate(*call) : std::nullopt, CauseName(late.cause),
              late.cause_name,
              late.cause == Cause::kNone ? Value() : Value(late.cause_ns),
              MatchedByName(call->by), Number(call->source),
              Number(call->destination), call->doubt);
  }
  result.tables.push_back(std::move(table));
}

void AddWaits(const Job& job, const std::vector<const MeasuredCall*>& calls,
              ResultSet& result) {
  Table table({"collective_waits",
               "One row per collective and rank.",
               {{"id", ColumnType::kInt, "As in collectives."},
                {"group", ColumnType::kText, "Process group."},
                {"sequence", ColumnType::kInt, "As in collectives."},
                {"collective", ColumnType::kText, "Kind."},
                {"rank", ColumnType::kInt, "Rank."},
                {"start_us", ColumnType::kTime,
                 "Aligned start, from the start of the job."},
                {"dur_us", ColumnType::kTime, "Duration."},
                {"wait_us", ColumnType::kTime,
                 "From its start to that of the last rank, at most dur_us."}}});
  const int64_t origin = OriginOf(job);
  for (size_t i = 0; i < calls.size(); ++i) {
    const MeasuredCall* const call = calls[i];
    for (const MeasuredMember& m : call->members) {
      table.Add(i, job.measured.groups[call->group].name, call->sequence,
                CollectiveKindName(call->kind), m.rank, m.start_ns - origin,
                m.dur_ns, call->comparable() ? Value(m.wait_ns) : Value());
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

void AddSizes(const Job& job, ResultSet& result) {
  Table table(
      {"collective_sizes",
       "Collectives by group, kind and size; the worst 1 % is at p99.",
       {{"group", ColumnType::kText, "Process group."},
        {"group_description", ColumnType::kText, "Its description."},
        {"collective", ColumnType::kText, "Kind."},
        {"dtype", ColumnType::kText, "Element type.", Shown::kHidden},
        {"ranks", ColumnType::kInt, "Ranks that take part."},
        {"bytes", ColumnType::kInt, "Full message.", Shown::kBytes},
        {"count", ColumnType::kInt, "Collectives."},
        {"total_transfer_us", ColumnType::kTime, "Sum of transfers."},
        {"mean_transfer_us", ColumnType::kTime, "Mean.", Shown::kHidden},
        {"p50_transfer_us", ColumnType::kTime, "Median."},
        {"p99_transfer_us", ColumnType::kTime, "Nearest rank.", Shown::kHidden},
        {"mean_start_skew_us", ColumnType::kTime, "Mean.", Shown::kHidden},
        {"p50_start_skew_us", ColumnType::kTime, "Median.", Shown::kHidden},
        {"p99_start_skew_us", ColumnType::kTime, "Nearest rank."},
        {"mean_busbw_gb_s", ColumnType::kReal, "Mean.", Shown::kHidden},
        {"p50_busbw_gb_s", ColumnType::kReal, "Median."},
        {"p99_busbw_gb_s", ColumnType::kReal, "Nearest rank.",
         Shown::kHidden}}});
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
      return skew.count > 0 ? Value(value) : Value();
    };
    const Distribution rate = Describe(std::move(row.sums->rate));
    table.Add(g.name, g.description, CollectiveKindName(kind), dtype, ranks,
              Number(bytes), row.transfer.count, row.transfer.sum,
              analysis::RoundNs(row.transfer.mean),
              analysis::RoundNs(row.transfer.median), row.transfer.p99,
              when(analysis::RoundNs(skew.mean)),
              when(analysis::RoundNs(skew.median)), when(skew.p99), rate.mean,
              rate.p50, rate.p99);
  }
  result.tables.push_back(std::move(table));
}

void AddAllToAll(const Job& job, const std::vector<const MeasuredCall*>& calls,
                 ResultSet& result) {
  Table table({"all_to_all",
               "How evenly all-to-all collectives share out their data.",
               {{"group", ColumnType::kText, "Process group."},
                {"sequence", ColumnType::kInt, "As in collectives."},
                {"ranks", ColumnType::kInt, "Ranks that take part."},
                {"total_bytes", ColumnType::kInt,
                 "That all recorded ranks put in.", Shown::kBytes},
                {"wall_us", ColumnType::kTime, "From first start to last end."},
                {"throughput_gb_s", ColumnType::kReal,
                 "Total over wall time, in 1e9 bytes per second."},
                {"size_imbalance", ColumnType::kReal,
                 "Largest over mean of what ranks put in; 1 is even."},
                {"largest_rank", ColumnType::kInt, "Rank that puts in most."},
                {"largest_bytes", ColumnType::kInt, "What it puts in.",
                 Shown::kBytes}}});
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
    table.Add(job.measured.groups[call->group].name, call->sequence,
              call->ranks, static_cast<int64_t>(total), wall, rate, imbalance,
              largest->rank, largest->in_bytes);
  }
  result.tables.push_back(std::move(table));

  Table traffic({"all_to_all_traffic",
                 "Bytes from rank to rank in all-to-all collectives.",
                 {{"group", ColumnType::kText, "Process group."},
                  {"source_rank", ColumnType::kInt, "From."},
                  {"destination_rank", ColumnType::kInt, "To."},
                  {"bytes", ColumnType::kInt, "Sum.", Shown::kBytes},
                  {"calls", ColumnType::kInt, "Collectives."}}});
  for (const Traffic& t : job.measured.traffic) {
    traffic.Add(job.measured.groups[t.group].name, t.source, t.destination,
                t.bytes, t.calls);
  }
  result.tables.push_back(std::move(traffic));
}

void AddLost(const Job& job, ResultSet& result) {
  Table table({"lost_calls",
               "Collectives that other ranks of the group recorded.",
               {{"group", ColumnType::kText, "Process group."},
                {"sequence", ColumnType::kInt, "As in collectives."},
                {"collective", ColumnType::kText, "Kind."},
                {"rank", ColumnType::kInt, "Rank without a record of it."},
                {"place", ColumnType::kText,
                 "inside: calls before and after it were recorded, so the "
                 "event was lost; edge: the recording may have begun later or "
                 "ended earlier."}}});
  for (const MeasuredLoss& lost : job.measured.lost) {
    table.Add(job.measured.groups[lost.group].name, lost.sequence,
              CollectiveKindName(lost.kind), lost.rank,
              lost.inside ? "inside" : "edge");
  }
  result.tables.push_back(std::move(table));
}

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
  Table table(
      {"bandwidth_model",
       "Transfer time as latency + bytes / bandwidth, where sizes differ.",
       {{"groups", ColumnType::kText, "Description of the groups."},
        {"collective", ColumnType::kText, "Kind."},
        {"ranks", ColumnType::kInt, "Ranks that take part."},
        {"sizes", ColumnType::kInt, "Different sizes."},
        {"count", ColumnType::kInt, "Collectives."},
        {"smallest_bytes", ColumnType::kInt, "Of the sizes.", Shown::kBytes},
        {"largest_bytes", ColumnType::kInt, "Of the sizes.", Shown::kBytes},
        {"latency_us", ColumnType::kTime, "Of an empty message."},
        {"busbw_gb_s", ColumnType::kReal,
         "Bus bandwidth of a long message, in 1e9 bytes per second."}}});
  for (const LinkSeries& s : links) {
    if (!(s.bytes_per_ns > 0)) continue;
    uint64_t calls = 0;
    for (const LinkSize& size : s.sizes) calls += size.calls;
    table.Add(s.description, CollectiveKindName(s.kind), s.ranks,
              s.sizes.size(), calls, s.sizes.front().bytes,
              s.sizes.back().bytes, analysis::RoundNs(s.latency_ns),
              s.bytes_per_ns);
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
