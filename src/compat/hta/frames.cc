// SPDX-License-Identifier: Apache-2.0
//
// One frame after the other, each by the rules of HTA as they are, known
// oddities included: a kernel whose name starts with "hip" is communication,
// "dma" anywhere in a name is OTHER, and gaps count from the event before.
#include "compat/hta/frames.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "base/status.h"

namespace lamina::compat::hta {
namespace {

using Span = std::pair<double, double>;
constexpr ColumnType kReal = ColumnType::kReal;
constexpr ColumnType kInt = ColumnType::kInt;
constexpr ColumnType kText = ColumnType::kText;

enum class Type { kComputation, kCommunication, kMemory, kOther };

bool Has(std::string_view name, std::string_view word) {
  return name.find(word) != std::string_view::npos;
}

Type TypeOf(std::string_view name) {
  const auto starts = [&](auto... words) {
    return (name.starts_with(words) || ...);
  };
  if (starts("nccl", "hip", "hccl") || Has(name, "ncclKernel"))
    return Type::kCommunication;
  if (starts("Memcpy", "Memset", "dma")) return Type::kMemory;
  if (Has(name, "Memcpy") || Has(name, "Memset") || Has(name, "dma") ||
      Has(name, "Sync") ||
      starts("Stream Wait Event", "runFunction", "job_exe", "packet", "pe_exe",
             "cpum_exe_subgraph", "collective_subgraph_execution") ||
      (starts("cuda") && Has(name, "LaunchKernel")))
    return Type::kOther;
  return Type::kComputation;
}

std::string_view TypeName(Type type) {
  switch (type) {
    case Type::kComputation:
      return "COMPUTATION";
    case Type::kCommunication:
      return "COMMUNICATION";
    case Type::kMemory:
      return "MEMORY";
    default:
      return "OTHER";
  }
}

template <class Rows>
std::vector<Span> Union(const Rows& rows) {
  std::vector<Span> spans;
  for (const Row* row : rows) spans.emplace_back(row->ts, row->end());
  std::stable_sort(
      spans.begin(), spans.end(),
      [](const Span& a, const Span& b) { return a.first < b.first; });
  std::vector<Span> out;
  for (const Span& s : spans) {
    if (out.empty() || s.first > out.back().second) {
      out.push_back(s);
    } else {
      out.back().second = std::max(out.back().second, s.second);
    }
  }
  return out;
}

double Length(const std::vector<Span>& spans) {
  double sum = 0;
  for (const Span& s : spans) sum += s.second - s.first;
  return sum;
}

// Time per set of active span lists, one bit each.
std::map<unsigned, double> Combine(const std::vector<std::vector<Span>>& sets,
                                   bool whole) {
  struct Edge {
    double time;
    int by;
  };
  std::vector<Edge> edges;
  for (size_t b = 0; b < sets.size(); ++b) {
    for (const Span& s : sets[b]) {
      edges.push_back({s.first, 1 << b});
      edges.push_back({s.second, -(1 << b)});
    }
  }
  std::stable_sort(
      edges.begin(), edges.end(),
      [](const Edge& a, const Edge& b) { return a.time < b.time; });
  std::map<unsigned, double> out;
  int running = 0;
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    running += edges[i].by;
    if (running <= 0) continue;
    const double length = edges[i + 1].time - edges[i].time;
    out[static_cast<unsigned>(running)] += whole ? std::trunc(length) : length;
  }
  return out;
}

double Round2(double value) { return std::nearbyint(value * 100) / 100; }

// count, mean, std, min, quartiles, max of pandas; all but the count are empty
// for no values.
std::array<Value, 8> Describe(std::vector<double> values, bool round) {
  std::sort(values.begin(), values.end());
  const auto n = values.size();
  std::array<Value, 8> out;
  out[0] = Value(static_cast<double>(n));
  if (n == 0) return out;
  const auto add = [&](size_t i, double value) {
    out[i] = Value(round ? Round2(value) : value);
  };
  long double sum = 0;
  for (const double v : values) sum += v;
  const long double mean = sum / static_cast<long double>(n);
  add(1, static_cast<double>(mean));
  if (n > 1) {
    long double squares = 0;
    for (const double v : values) squares += (v - mean) * (v - mean);
    add(2, static_cast<double>(
               std::sqrt(squares / static_cast<long double>(n - 1))));
  }
  const auto quantile = [&](double q) {
    const double p = q * static_cast<double>(n - 1);
    const auto low = static_cast<size_t>(p);
    const double a = values[low];
    const double b = values[std::min(low + 1, n - 1)];
    return a + (b - a) * (p - static_cast<double>(low));
  };
  add(3, values.front());
  add(4, quantile(0.25));
  add(5, quantile(0.5));
  add(6, quantile(0.75));
  add(7, values.back());
  return out;
}

constexpr std::array<std::string_view, 8> kStatistics = {
    "count", "mean", "std", "min", "25%", "50%", "75%", "max"};

std::vector<Column> WithStatistics(std::vector<Column> columns,
                                   const std::string& prefix) {
  for (const std::string_view name : kStatistics)
    columns.push_back(
        {prefix + std::string(name), kReal, "Of pandas' describe()."});
  return columns;
}

template <class... Keys>
void AddStatistics(Table& table, const std::array<Value, 8>& statistics,
                   const Keys&... keys) {
  std::vector<Value> row = {Value(keys)...};
  row.insert(row.end(), statistics.begin(), statistics.end());
  table.AddRow(row);
}

class Frames {
 public:
  explicit Frames(const Rank& rank) : rank_(rank.rank), rows_(rank.rows) {
    for (const Row& row : rows_) {
      if (row.stream == -1) continue;
      gpu_.push_back(&row);
      by_type_[static_cast<size_t>(TypeOf(row.name))].push_back(&row);
    }
  }

  const std::vector<const Row*>& of(Type type) const {
    return by_type_[static_cast<size_t>(type)];
  }
  std::vector<Span> UnionOf(Type type) const { return Union(of(type)); }
  bool empty() const { return gpu_.empty(); }
  int64_t rank() const { return rank_; }

  void Temporal(Table& table) const {
    const std::vector<Span> all = Union(gpu_);
    const double kernels = all.back().second - all.front().first;
    const double idle = kernels - Length(all);
    const double compute = Length(UnionOf(Type::kComputation));
    const double rest = kernels - compute - idle;
    const auto percent = [&](double v) {
      return kernels > 0 ? Value(Round2(100 * v / kernels)) : Value();
    };
    table.Add(rank_, idle, compute, rest, kernels, percent(idle),
              percent(compute), percent(rest));
  }

  void Overlap(Table& table) const {
    const auto comm = UnionOf(Type::kCommunication);
    auto sets = Combine({comm, UnionOf(Type::kComputation)}, false);
    const double length = Length(comm);
    table.Add(rank_,
              length > 0 ? Value(Round2(100 * sets[3] / length)) : Value());
  }

  std::map<unsigned, double> Types() const {
    return Combine({UnionOf(Type::kComputation), UnionOf(Type::kCommunication),
                    UnionOf(Type::kMemory)},
                   true);
  }

  void Idle(Table& shares, Table& statistics) const {
    absl::flat_hash_map<int64_t, const Row*> by_index;
    for (const Row& row : rows_) by_index[row.index] = &row;
    std::vector<int64_t> streams;
    std::map<int64_t, std::vector<const Row*>> work;
    for (const Row* row : gpu_) {
      if (!IsWork(row->category)) continue;
      auto& list = work[row->stream];
      if (list.empty()) streams.push_back(row->stream);
      list.push_back(row);
    }
    for (const int64_t stream : streams) {
      auto& list = work[stream];
      std::stable_sort(
          list.begin(), list.end(),
          [](const Row* a, const Row* b) { return a->ts < b->ts; });
      // By category; the first event opens "other" without a gap.
      std::map<std::string_view, std::vector<double>> gaps;
      gaps["other"];
      for (size_t i = 1; i < list.size(); ++i) {
        const double before = list[i - 1]->end();
        const double gap = list[i]->ts - before;
        const auto host = by_index.find(list[i]->link);
        gaps[host != by_index.end() && host->second->ts > before ? "host_wait"
             : gap < 30                                          ? "kernel_wait"
                                                                 : "other"]
            .push_back(gap);
      }
      double total = 0;
      for (const auto& [category, values] : gaps) {
        for (const double v : values) total += v;
      }
      for (const auto& [category, values] : gaps) {
        double sum = 0;
        for (const double v : values) sum += v;
        shares.Add(rank_, stream, category, Round2(sum),
                   total != 0 ? Value(Round2(sum / total)) : Value());
        AddStatistics(statistics, Describe(values, true), category, rank_,
                      stream);
      }
    }
  }

  void Queues(Table& table) const {
    static constexpr std::array<std::string_view, 12> kCalls = {
        "cudaLaunchKernel",
        "cudaLaunchKernelExC",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
        "cudaMemcpyAsync",
        "cudaMemsetAsync",
        "hipLaunchKernel",
        "hipExtModuleLaunchKernel",
        "hipMemcpyAsync",
        "hipMemsetAsync",
        "hipMemcpyWithStream",
        "runFunction - job_prep_and_submit_for_execution"};
    const auto by_correlation = ByCorrelation();
    absl::flat_hash_map<int64_t, bool> known;
    std::map<int64_t, std::vector<std::pair<double, int>>> points;
    for (const Row& row : rows_) {
      if (row.link <= 0 ||
          std::find(kCalls.begin(), kCalls.end(), row.name) == kCalls.end())
        continue;
      known[row.correlation] = true;
      const auto it = by_correlation.find(row.correlation);
      if (it == by_correlation.end()) continue;
      for (const Row* work : it->second)
        points[work->stream].emplace_back(row.ts, 1);
    }
    for (const Row* row : gpu_) {
      if (known.contains(row->correlation))
        points[row->stream].emplace_back(row->ts, -1);
    }
    for (auto& [stream, list] : points) {
      std::stable_sort(
          list.begin(), list.end(),
          [](const auto& a, const auto& b) { return a.first < b.first; });
      std::vector<double> lengths;
      int running = 0;
      for (const auto& [time, by] : list)
        lengths.push_back(static_cast<double>(running += by));
      AddStatistics(table, Describe(std::move(lengths), false), rank_, stream);
    }
  }

  void Bandwidth(Table& table) const {
    std::map<std::string, std::vector<std::pair<double, double>>> points;
    for (const Row* row : of(Type::kMemory)) {
      const std::string name = row->name.starts_with("Memset") ? "Memset"
                               : row->name.starts_with("Memcpy")
                                   ? std::string(row->name.substr(0, 11))
                                   : "Memcpy Unknown";
      points[name].emplace_back(row->ts, row->bandwidth);
      points[name].emplace_back(row->ts + (row->dur == 0 ? 1 : row->dur),
                                -row->bandwidth);
    }
    for (auto& [name, list] : points) {
      std::stable_sort(
          list.begin(), list.end(),
          [](const auto& a, const auto& b) { return a.first < b.first; });
      std::vector<double> rates;
      double running = 0;
      for (const auto& [time, by] : list) {
        running += by;
        if (running > 0) rates.push_back(running);
      }
      if (!rates.empty())
        AddStatistics(table, Describe(std::move(rates), false), rank_, name);
    }
  }

  void Launches(Table& table) const {
    static constexpr std::array<std::string_view, 5> kCalls = {
        "cudaLaunchKernel", "cudaLaunchKernelExC",
        "runFunction - job_prep_and_submit_for_execution", "cudaMemcpyAsync",
        "cudaMemsetAsync"};
    absl::flat_hash_map<int64_t, bool> wanted;
    for (const Row& row : rows_) {
      if (std::find(kCalls.begin(), kCalls.end(), row.name) != kCalls.end())
        wanted[row.correlation] = true;
    }
    const auto by_correlation = ByCorrelation();
    std::vector<double> host, gpu, delay;
    for (const Row& row : rows_) {
      if (row.stream != -1 || !wanted.contains(row.correlation)) continue;
      const auto it = by_correlation.find(row.correlation);
      if (it == by_correlation.end()) continue;
      for (const Row* work : it->second) {
        host.push_back(row.dur);
        gpu.push_back(work->dur);
        delay.push_back(std::max(0.0, work->ts - row.ts - row.dur));
      }
    }
    const auto a = Describe(std::move(host), false);
    const auto b = Describe(std::move(gpu), false);
    const auto c = Describe(std::move(delay), false);
    for (size_t i = 0; i < kStatistics.size(); ++i)
      table.Add(kStatistics[i], a[i], b[i], c[i]);
  }

  void Kernels(Table& table) const {
    for (const Type type :
         {Type::kCommunication, Type::kComputation, Type::kMemory}) {
      std::map<std::string_view, std::vector<double>> names;
      for (const Row* row : of(type)) names[row->name].push_back(row->dur);
      for (auto& [name, values] : names) {
        double sum = 0;
        for (const double v : values) sum += v;
        const auto d = Describe(values, false);
        // HTA fills what is empty here, and only here, with 0.
        table.Add(name, sum, d[7], d[3], d[2].null() ? Value(0.0) : d[2], d[1],
                  TypeName(type), rank_);
      }
    }
  }

 private:
  static bool IsWork(std::string_view category) {
    return category == "kernel" || category == "Kernel" ||
           category == "gpu_memset" || category == "Memset" ||
           category == "gpu_memcpy" || category == "Memcpy" ||
           category == "mtia_ccp_events";
  }

  absl::flat_hash_map<int64_t, std::vector<const Row*>> ByCorrelation() const {
    absl::flat_hash_map<int64_t, std::vector<const Row*>> out;
    for (const Row* row : gpu_) out[row->correlation].push_back(row);
    return out;
  }

  int64_t rank_;
  const std::vector<Row>& rows_;
  std::vector<const Row*> gpu_;
  std::array<std::vector<const Row*>, 4> by_type_;
};

Table TypesTable(const std::vector<Frames>& all) {
  std::map<unsigned, double> sums;
  double total = 0;
  for (const Frames& frames : all) {
    for (const auto& [set, time] : frames.Types()) {
      sums[set] += time;
      total += time;
    }
  }
  std::vector<std::pair<std::string, double>> rows;
  for (const auto& [set, time] : sums) {
    std::string name;
    for (unsigned b = 0; b < 3; ++b) {
      if ((set >> b & 1) == 0) continue;
      name += (name.empty() ? "" : " overlapping ") +
              std::string(TypeName(static_cast<Type>(b)));
    }
    rows.emplace_back(std::move(name), time);
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  Table table({"kernel_type_breakdown",
               "Time per set of kernel types that ran together.",
               {{"kernel_type", kText, "Types, joined by overlapping."},
                {"sum", kReal, "Microseconds, over all ranks."},
                {"percentage", kReal, "Share of the sum."}}});
  for (const auto& [name, time] : rows)
    table.Add(name, time, std::nearbyint(1000 * time / total) / 10);
  return table;
}

}  // namespace

Result<ResultSet> MakeFrames(const Loaded& loaded, int64_t rank) {
  std::vector<Frames> all;
  for (const Rank& r : loaded.ranks()) {
    Frames frames(r);
    if (!frames.empty()) all.push_back(std::move(frames));
  }
  if (all.empty())
    return Fail(UsageError("the layout hta needs device work; there is none"));
  const Frames* one = rank < 0 ? &all.front() : nullptr;
  for (const Frames& frames : all) {
    if (frames.rank() == rank) one = &frames;
  }
  if (one == nullptr) {
    return Fail(UsageError("⟨rank⟩: there is no rank " + std::to_string(rank),
                           "ranks: " + std::to_string(all.front().rank()) +
                               " to " + std::to_string(all.back().rank())));
  }
  const Column rank_column = {"rank", kInt, "Rank."};
  const Column stream = {"stream", kInt, "Stream."};
  Table temporal(
      {"temporal_breakdown",
       "Idle, computing and other time of the device.",
       {rank_column,
        {"idle_time(us)", kReal, "Nothing ran."},
        {"compute_time(us)", kReal, "Union of COMPUTATION."},
        {"non_compute_time(us)", kReal, "The rest."},
        {"kernel_time(us)", kReal, "First start to last end."},
        {"idle_time_pctg", kReal, "Percent of kernel_time."},
        {"compute_time_pctg", kReal, "Percent of kernel_time."},
        {"non_compute_time_pctg", kReal, "Percent of kernel_time."}}});
  Table overlap({"comm_comp_overlap",
                 "Share of communication that computation hides.",
                 {rank_column,
                  {"comp_comm_overlap_pctg", kReal,
                   "Percent of the union of COMMUNICATION."}}});
  for (const Frames& frames : all) {
    frames.Temporal(temporal);
    frames.Overlap(overlap);
  }
  Table idle({"idle_breakdown",
              "Gaps between the events of a stream by category.",
              {rank_column,
               stream,
               {"idle_category", kText, "host_wait, kernel_wait or other."},
               {"idle_time", kReal, "Microseconds."},
               {"idle_time_ratio", kReal, "Share of the stream."}}});
  Table intervals(
      {"idle_interval_stats", "Statistics of those gaps.",
       WithStatistics(
           {{"idle_category", kText, "Category."}, rank_column, stream}, "")});
  one->Idle(idle, intervals);
  Table queues({"queue_length_summary",
                "Queue lengths at the points where they change.",
                WithStatistics({rank_column, stream}, "queue_length_")});
  one->Queues(queues);
  Table bandwidth(
      {"memory_bw_summary",
       "Sum of recorded bandwidths at the points where it changes.",
       WithStatistics({rank_column, {"name", kText, "Kind of copy."}},
                      "memory_bw_gbps_")});
  one->Bandwidth(bandwidth);
  Table launches({"launch_stats_describe",
                  "Statistics of launches of four CUDA calls.",
                  {{"statistic", kText, "Of pandas' describe()."},
                   {"cpu_duration", kReal, "Microseconds."},
                   {"gpu_duration", kReal, "Microseconds."},
                   {"launch_delay", kReal, "Microseconds."}}});
  one->Launches(launches);
  Table kernels({"kernel_breakdown",
                 "Device events by type and name.",
                 {{"name", kText, "Name."},
                  {"sum (us)", kReal, "Sum of durations."},
                  {"max (us)", kReal, "Longest."},
                  {"min (us)", kReal, "Shortest."},
                  {"stddev", kReal, "With n - 1."},
                  {"mean (us)", kReal, "Mean."},
                  {"kernel_type", kText, "COMMUNICATION, COMPUTATION, MEMORY."},
                  rank_column}});
  one->Kernels(kernels);
  ResultSet result;
  result.tables.push_back(std::move(temporal));
  result.tables.push_back(std::move(overlap));
  result.tables.push_back(TypesTable(all));
  result.tables.push_back(std::move(idle));
  result.tables.push_back(std::move(intervals));
  result.tables.push_back(std::move(queues));
  result.tables.push_back(std::move(bandwidth));
  result.tables.push_back(std::move(launches));
  result.tables.push_back(std::move(kernels));
  return result;
}

}  // namespace lamina::compat::hta
