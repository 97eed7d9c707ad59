// SPDX-License-Identifier: Apache-2.0
//
// kernels: device time by kernel name, op and stream, with the time from
// launch to start. short_kernels: kernels so short that launching them costs
// as much as running them.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/common/kernel_groups.h"
#include "analysis/common/stats.h"

namespace lamina::analysis::kernels {
namespace {

constexpr size_t kBins = 100;

Schema KernelsSchema() {
  return {
      "kernels",
      "Device time by kernel, copies and fills too.",
      {{"kernel", ColumnType::kText, "Name as recorded."},
       {"op", ColumnType::kText,
        "Nearest op above the launch, else the API call; empty when "
        "unlinked."},
       {"family", ColumnType::kText, "Family."},
       {"kind", ColumnType::kText, "kernel, memcpy, memset or graph.",
        Shown::kHidden},
       {"device", ColumnType::kInt, "Device.", Shown::kHidden},
       {"stream", ColumnType::kInt, "Stream."},
       {"count", ColumnType::kInt, "Times it ran."},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations."},
       {"percent", ColumnType::kReal, "Share of all device time.", Shown::kBar},
       {"mean_us", ColumnType::kTime, "Mean duration."},
       {"p50_us", ColumnType::kTime, "Median.", Shown::kHidden},
       {"p99_us", ColumnType::kTime, "99th percentile, nearest rank.",
        Shown::kHidden},
       {"min_us", ColumnType::kTime, "Shortest.", Shown::kHidden},
       {"max_us", ColumnType::kTime, "Longest.", Shown::kHidden},
       {"launch_latency_us", ColumnType::kTime,
        "Mean time from the start of the launch call to the start of the "
        "work; empty when unlinked.",
        Shown::kHidden},
       {"queue_us", ColumnType::kTime,
        "Mean part of that during which the stream was busy with earlier "
        "work.",
        Shown::kHidden},
       {"first_uid", ColumnType::kInt, "Event number of the first.",
        Shown::kHidden}}};
}

Schema ShortSchema() {
  return {"short_kernels",
          "Kernels shorter than the threshold (10 us by default).",
          {{"op", ColumnType::kText,
            "Nearest op above the launch, else the API call."},
           {"kernel", ColumnType::kText, "Name as recorded."},
           {"input_dims", ColumnType::kText, "Shapes of the op, JSON.",
            Shown::kHidden},
           {"count", ColumnType::kInt, "Short ones."},
           {"kernel_time_us", ColumnType::kTime, "Sum of their durations."},
           {"mean_us", ColumnType::kTime, "Mean duration."},
           {"percent", ColumnType::kReal, "Share of total_time.",
            Shown::kPercent}}};
}

Schema HistogramSchema() {
  return {"short_kernel_histogram",
          "Lengths of short kernels in 100 bins.",
          {{"bin_start_us", ColumnType::kReal, "Lower edge, included."},
           {"bin_end_us", ColumnType::kReal,
            "Upper edge, excluded but in the last bin."},
           {"count", ColumnType::kInt, "Kernels in the bin."}}};
}

// What the events of a row add up to.
struct Sums {
  std::vector<int64_t> times;
  int64_t latency = 0;
  int64_t queue = 0;
  size_t linked = 0;
};

class KernelTables {
 public:
  explicit KernelTables(const Context& context)
      : context_(context), trace_(context.trace) {}

  ResultSet Make() {
    ResultSet result;
    result.tables.push_back(Kernels());
    result.tables.push_back(Short());
    result.tables.push_back(Histogram());
    return result;
  }

 private:
  // By row of the table.
  std::vector<Sums> SumsOf(const KernelGroups& groups) const {
    std::vector<Sums> sums(groups.rows.size());
    for (size_t row = 0; row < sums.size(); ++row)
      sums[row].times.reserve(groups.rows[row].count);
    // The end of earlier work on each stream, to tell queueing from latency.
    std::vector<int64_t> stream_free(trace_.streams.size(), trace_.first_ns);
    for (const SliceId s : trace_.device_slices()) {
      Sums& sum = sums[groups.row_of[trace_.slices.detail[s.value]]];
      sum.times.push_back(trace_.Duration(s));
      int64_t& free = stream_free[trace_.Device(s)->lane.value];
      const NodeId launch = context_.tree.launch(s);
      if (launch.valid()) {
        const int64_t call = trace_.Start(context_.tree.slice(launch));
        sum.latency += trace_.Start(s) - call;
        sum.queue +=
            std::max<int64_t>(0, std::min(free, trace_.Start(s)) - call);
        ++sum.linked;
      }
      free = std::max(free, trace_.End(s));
    }
    return sums;
  }

  Table Kernels() const {
    const KernelGroups groups = KernelGroups::Build(context_);
    std::vector<Sums> sums = SumsOf(groups);
    int64_t total = 0;
    for (const KernelGroup& group : groups.rows) total += group.sum_ns;
    Table table(KernelsSchema());
    for (size_t row = 0; row < sums.size(); ++row) {
      const KernelGroup& group = groups.rows[row];
      Sums& sum = sums[row];
      const Stats stats = Summarize(sum.times);
      const trace::DeviceArgs& args = *trace_.Device(group.first);
      const auto mean_of = [&](int64_t ns) {
        return sum.linked > 0 ? Value(RoundNs(static_cast<double>(ns) /
                                              static_cast<double>(sum.linked)))
                              : Value();
      };
      const auto number = [](int64_t value) {
        return value == trace::kNoInt ? Value() : Value(value);
      };
      table.Add(
          trace_.Name(group.first), trace_.Text(NameOf(context_, group.parent)),
          context_.catalog.family(context_.device.family(group.first)).name,
          trace::KindName(trace_.KindOf(group.first)), number(args.device),
          number(args.stream), stats.count, stats.sum,
          total > 0 ? Value(100.0 * static_cast<double>(stats.sum) /
                            static_cast<double>(total))
                    : Value(),
          RoundNs(stats.mean), RoundNs(stats.median), stats.p99, stats.min,
          stats.max, mean_of(sum.latency), mean_of(sum.queue),
          trace_.Uid(group.first));
    }
    return table;
  }

  bool IsShort(SliceId s) const {
    return trace_.KindOf(s) == trace::Kind::kKernel &&
           trace_.Duration(s) < context_.settings.short_kernel_ns;
  }

  Table Short() const {
    int64_t first = 0;
    int64_t last = 0;
    bool any = false;
    using Key = std::tuple<StringId, StringId, StringId>;
    absl::flat_hash_map<Key, size_t> ids;
    struct Row {
      SliceId first;
      NodeId parent;
      int64_t sum = 0;
      size_t count = 0;
    };
    std::vector<Row> rows;
    for (const SliceId s : trace_.device_slices()) {
      if (!any) first = trace_.Start(s);
      last = any ? std::max(last, trace_.End(s)) : trace_.End(s);
      any = true;
      if (!IsShort(s)) continue;
      const NodeId parent = KernelParent(context_, s);
      const trace::OpArgs* args =
          parent.valid() ? trace_.Op(context_.tree.slice(parent)) : nullptr;
      const Key key(trace_.slices.name[s.value], NameOf(context_, parent),
                    args ? args->dims : StringId());
      const auto [it, is_new] = ids.try_emplace(key, rows.size());
      if (is_new) rows.push_back({s, parent, 0, 0});
      rows[it->second].sum += trace_.Duration(s);
      ++rows[it->second].count;
    }
    std::sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
      if (a.sum != b.sum) return a.sum > b.sum;
      return trace_.Uid(a.first) < trace_.Uid(b.first);
    });
    Table table(ShortSchema());
    for (const Row& row : rows) {
      const trace::OpArgs* args =
          row.parent.valid() ? trace_.Op(context_.tree.slice(row.parent))
                             : nullptr;
      table.Add(
          trace_.Text(NameOf(context_, row.parent)), trace_.Name(row.first),
          args != nullptr && args->dims.valid() ? Value(trace_.Text(args->dims))
                                                : Value(),
          row.count, row.sum,
          RoundNs(static_cast<double>(row.sum) /
                  static_cast<double>(row.count)),
          last > first ? Value(100.0 * static_cast<double>(row.sum) /
                               static_cast<double>(last - first))
                       : Value());
    }
    return table;
  }

  Table Histogram() const {
    Table table(HistogramSchema());
    std::vector<int64_t> times;
    for (const SliceId s : trace_.device_slices()) {
      if (IsShort(s)) times.push_back(trace_.Duration(s));
    }
    for (const HistogramBin& bin : MakeHistogram(times, kBins))
      table.Add(bin.start_us, bin.end_us, bin.count);
    return table;
  }

  const Context& context_;
  const Trace& trace_;
};

Result<ResultSet> Run(const Context& context) {
  return KernelTables(context).Make();
}

}  // namespace

AnalysisInfo Info() {
  return {"kernels", "Device time by kernel; short kernels.",
          [] {
            return std::vector<Schema>{KernelsSchema(), ShortSchema(),
                                       HistogramSchema()};
          },
          &Run};
}

}  // namespace lamina::analysis::kernels
