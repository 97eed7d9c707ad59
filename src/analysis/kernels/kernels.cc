// SPDX-License-Identifier: Apache-2.0
//
// kernels: device time by kernel name, op and stream, with the time from
// launch to start. short_kernels: kernels so short that launching them costs
// as much as running them.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/common/kernel_groups.h"
#include "analysis/common/stats.h"
#include "table/row_columns.h"

namespace lamina::analysis::kernels {
namespace {

constexpr size_t kBins = 100;

// Rows of the tables; times in nanoseconds.
struct KernelRow {
  std::string_view kernel, op, family, kind;
  std::optional<int64_t> device, stream;
  size_t count;
  int64_t kernel_time;
  std::optional<double> percent;
  int64_t mean, p50, p99, min, max;
  std::optional<int64_t> launch_latency, queue;
  uint32_t first_uid;
};
const RowColumns<KernelRow>& KernelColumns() {
  static const RowColumns<KernelRow> columns{
      "kernels",
      "Device time by kernel, copies and fills too.",
      {{"kernel", ColumnType::kText, "Name as recorded.", &KernelRow::kernel},
       {"op", ColumnType::kText,
        "Nearest op above the launch, else the API call; empty when "
        "unlinked.",
        &KernelRow::op},
       {"family", ColumnType::kText, "Family.", &KernelRow::family},
       {"kind", ColumnType::kText, "kernel, memcpy, memset or graph.",
        &KernelRow::kind, Shown::kHidden},
       {"device_index", ColumnType::kInt, "Device.", &KernelRow::device,
        Shown::kHidden},
       {"stream", ColumnType::kInt, "Stream.", &KernelRow::stream},
       {"count", ColumnType::kInt, "Times it ran.", &KernelRow::count},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations.",
        &KernelRow::kernel_time},
       {"percent", ColumnType::kReal, "Share of all device time.",
        &KernelRow::percent, Shown::kBar},
       {"mean_us", ColumnType::kTime, "Mean duration.", &KernelRow::mean},
       {"p50_us", ColumnType::kTime, "Median.", &KernelRow::p50,
        Shown::kHidden},
       {"p99_us", ColumnType::kTime, "99th percentile, nearest rank.",
        &KernelRow::p99, Shown::kHidden},
       {"min_us", ColumnType::kTime, "Shortest.", &KernelRow::min,
        Shown::kHidden},
       {"max_us", ColumnType::kTime, "Longest.", &KernelRow::max,
        Shown::kHidden},
       {"launch_latency_us", ColumnType::kTime,
        "Mean time from the start of the launch call to the start of the "
        "work; empty when unlinked.",
        &KernelRow::launch_latency, Shown::kHidden},
       {"queue_us", ColumnType::kTime,
        "Mean part of that during which the stream was busy with earlier "
        "work.",
        &KernelRow::queue, Shown::kHidden},
       {"first_uid", ColumnType::kInt, "Event number of the first.",
        &KernelRow::first_uid, Shown::kHidden}}};
  return columns;
}

struct ShortRow {
  std::string_view op, kernel;
  std::optional<std::string_view> input_dims;
  size_t count;
  int64_t kernel_time, mean;
  std::optional<double> percent;
};
const RowColumns<ShortRow>& ShortColumns() {
  static const RowColumns<ShortRow> columns{
      "short_kernels",
      "Kernels shorter than the threshold (10 us by default).",
      {{"op", ColumnType::kText,
        "Nearest op above the launch, else the API call.", &ShortRow::op},
       {"kernel", ColumnType::kText, "Name as recorded.", &ShortRow::kernel},
       {"input_dims", ColumnType::kText, "Shapes of the op, JSON.",
        &ShortRow::input_dims, Shown::kHidden},
       {"count", ColumnType::kInt, "Short ones.", &ShortRow::count},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations.",
        &ShortRow::kernel_time},
       {"mean_us", ColumnType::kTime, "Mean duration.", &ShortRow::mean},
       {"percent", ColumnType::kReal, "Share of total_time.",
        &ShortRow::percent, Shown::kPercent}}};
  return columns;
}

const RowColumns<HistogramBin>& HistogramColumns() {
  static const RowColumns<HistogramBin> columns{
      "short_kernel_histogram",
      "Lengths of short kernels in 100 bins.",
      {{"bin_start_us", ColumnType::kReal, "Lower edge, included.",
        &HistogramBin::start_us},
       {"bin_end_us", ColumnType::kReal,
        "Upper edge, excluded but in the last bin.", &HistogramBin::end_us},
       {"count", ColumnType::kInt, "Kernels in the bin.",
        &HistogramBin::count}}};
  return columns;
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
    std::vector<KernelRow> rows;
    for (size_t row = 0; row < sums.size(); ++row) {
      const KernelGroup& group = groups.rows[row];
      Sums& sum = sums[row];
      const Stats stats = Summarize(sum.times);
      const trace::DeviceArgs& args = *trace_.Device(group.first);
      const auto mean_of = [&](int64_t ns) {
        return sum.linked > 0
                   ? std::optional(RoundNs(static_cast<double>(ns) /
                                           static_cast<double>(sum.linked)))
                   : std::nullopt;
      };
      const auto number = [](int64_t value) {
        return value == trace::kNoInt ? std::nullopt : std::optional(value);
      };
      rows.push_back(
          {.kernel = trace_.Name(group.first),
           .op = trace_.Text(NameOf(context_, group.parent)),
           .family =
               context_.catalog.family(context_.device.family(group.first))
                   .name,
           .kind = trace::KindName(trace_.KindOf(group.first)),
           .device = number(args.device),
           .stream = number(args.stream),
           .count = stats.count,
           .kernel_time = stats.sum,
           .percent = total > 0 ? std::optional(100.0 *
                                                static_cast<double>(stats.sum) /
                                                static_cast<double>(total))
                                : std::nullopt,
           .mean = RoundNs(stats.mean),
           .p50 = RoundNs(stats.median),
           .p99 = stats.p99,
           .min = stats.min,
           .max = stats.max,
           .launch_latency = mean_of(sum.latency),
           .queue = mean_of(sum.queue),
           .first_uid = trace_.Uid(group.first)});
    }
    return KernelColumns().Make(rows);
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
    std::vector<ShortRow> out;
    for (const Row& row : rows) {
      const trace::OpArgs* args =
          row.parent.valid() ? trace_.Op(context_.tree.slice(row.parent))
                             : nullptr;
      out.push_back(
          {.op = trace_.Text(NameOf(context_, row.parent)),
           .kernel = trace_.Name(row.first),
           .input_dims =
               args != nullptr && args->dims.valid()
                   ? std::optional<std::string_view>(trace_.Text(args->dims))
                   : std::nullopt,
           .count = row.count,
           .kernel_time = row.sum,
           .mean = RoundNs(static_cast<double>(row.sum) /
                           static_cast<double>(row.count)),
           .percent = last > first
                          ? std::optional(100.0 * static_cast<double>(row.sum) /
                                          static_cast<double>(last - first))
                          : std::nullopt});
    }
    return ShortColumns().Make(out);
  }

  Table Histogram() const {
    std::vector<int64_t> times;
    for (const SliceId s : trace_.device_slices()) {
      if (IsShort(s)) times.push_back(trace_.Duration(s));
    }
    return HistogramColumns().Make(MakeHistogram(times, kBins));
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
            return std::vector<Schema>{KernelColumns().schema(),
                                       ShortColumns().schema(),
                                       HistogramColumns().schema()};
          },
          &Run};
}

}  // namespace lamina::analysis::kernels
