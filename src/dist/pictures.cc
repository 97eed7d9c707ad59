// SPDX-License-Identifier: Apache-2.0
#include "dist/pictures.h"

#include <algorithm>
#include <fmt/core.h>
#include <set>

#include "base/decimal.h"
#include "render/ranks/charts.h"

namespace lamina::dist {
namespace {

using analysis::CollectiveKindName;

constexpr size_t kMostRows = 256;
constexpr size_t kMostColumns = 200;
constexpr size_t kBars = 24;
constexpr size_t kSeries = 6;

// Numbers in order, in at most `most` ranges of neighbours.
class Bins {
 public:
  Bins(const std::set<int64_t>& numbers, size_t most)
      : numbers_(numbers.begin(), numbers.end()),
        per_bin_((numbers_.size() + most - 1) / most) {}

  size_t size() const {
    return per_bin_ == 0 ? 0 : (numbers_.size() + per_bin_ - 1) / per_bin_;
  }
  size_t Of(int64_t number) const {
    const auto it = std::lower_bound(numbers_.begin(), numbers_.end(), number);
    return static_cast<size_t>(it - numbers_.begin()) / per_bin_;
  }
  std::vector<std::string> Labels() const {
    std::vector<std::string> out;
    for (size_t i = 0; i < size(); ++i) {
      const int64_t first = numbers_[i * per_bin_];
      const int64_t last =
          numbers_[std::min((i + 1) * per_bin_, numbers_.size()) - 1];
      out.push_back(first == last ? std::to_string(first)
                                  : fmt::format("{}-{}", first, last));
    }
    return out;
  }
  bool exact() const { return per_bin_ <= 1; }

 private:
  std::vector<int64_t> numbers_;
  size_t per_bin_ = 1;
};

void AddHeatMap(const Table& steps, std::string_view column,
                std::string_view name, std::string_view title,
                std::vector<Diagram>& out) {
  const size_t rank_column = steps.schema().IndexOf("rank");
  const size_t step_column = steps.schema().IndexOf("step");
  const size_t value_column = steps.schema().IndexOf(column);
  std::set<int64_t> ranks, numbers;
  for (size_t r = 0; r < steps.rows(); ++r) {
    if (steps.IsNull(r, step_column)) continue;
    ranks.insert(steps.Int(r, rank_column));
    numbers.insert(steps.Int(r, step_column));
  }
  if (numbers.empty() || ranks.size() < 2) return;
  const Bins rows(ranks, kMostRows);
  const Bins columns(numbers, kMostColumns);
  render::HeatMap map;
  map.title = title;
  map.row_title = "rank";
  map.column_title = "step";
  map.rows = rows.Labels();
  map.columns = columns.Labels();
  map.values.assign(rows.size() * columns.size(), -1);
  map.texts.resize(map.values.size());
  int64_t most = 0;
  for (size_t r = 0; r < steps.rows(); ++r) {
    if (steps.IsNull(r, step_column)) continue;
    const int64_t rank = steps.Int(r, rank_column);
    const int64_t step = steps.Int(r, step_column);
    const int64_t value = steps.Int(r, value_column);
    const size_t cell = rows.Of(rank) * columns.size() + columns.Of(step);
    // Of a range of ranks or steps the largest.
    if (static_cast<double>(value) <= map.values[cell]) continue;
    map.values[cell] = static_cast<double>(value);
    map.texts[cell] =
        fmt::format("rank {}, step {}: {}", rank, step, HumanTime(value));
    most = std::max(most, value);
  }
  map.limit = static_cast<double>(std::max<int64_t>(most, 1));
  map.low = "0";
  map.high = HumanTime(most);
  if (!rows.exact() || !columns.exact())
    map.footnote = "A cell of several ranks or steps shows the largest.";
  out.push_back({std::string(name), render::DrawHeatMap(map)});
}

void AddStragglers(const std::vector<RankBlame>& blame,
                   std::vector<Diagram>& out) {
  render::BarChart chart;
  chart.title = "Waiting of all ranks by the rank that is behind it";
  chart.kinds = {"compute", "launch", "previous collective", "no cause found"};
  size_t left = 0;
  for (const RankBlame& b : blame) {
    if (b.blamed_ns == 0) continue;
    if (chart.bars.size() == kBars) {
      ++left;
      continue;
    }
    render::Bar bar;
    bar.label = fmt::format("rank {}", b.rank);
    bar.value = HumanTime(b.blamed_ns);
    if (!b.causes.empty() && !b.causes.front().name.empty())
      bar.value += ": " + b.causes.front().name;
    for (const Cause kind :
         {Cause::kCompute, Cause::kLaunch, Cause::kPrevious, Cause::kNone}) {
      for (const CauseSum& cause : b.causes) {
        if (cause.cause != kind) continue;
        const size_t colour = kind == Cause::kCompute    ? 0
                              : kind == Cause::kLaunch   ? 1
                              : kind == Cause::kPrevious ? 2
                                                         : 3;
        bar.parts.push_back(
            {colour, static_cast<double>(cause.wait_ns),
             fmt::format("{} {}: {}", CauseName(kind), cause.name,
                         HumanTime(cause.wait_ns))});
      }
    }
    chart.bars.push_back(std::move(bar));
  }
  if (chart.bars.empty()) return;
  if (left > 0) chart.footnote = fmt::format("{} more ranks", left);
  out.push_back({"stragglers", render::DrawBars(chart)});
}

void AddBandwidth(const std::vector<LinkSeries>& links,
                  std::vector<Diagram>& out) {
  std::vector<const LinkSeries*> order;
  for (const LinkSeries& series : links) order.push_back(&series);
  const auto time_of = [](const LinkSeries* series) {
    int64_t sum = 0;
    for (const LinkSize& size : series->sizes)
      sum += size.transfer_ns * static_cast<int64_t>(size.calls);
    return sum;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](auto* a, auto* b) { return time_of(a) > time_of(b); });
  render::RatePlot plot;
  plot.title = "Bus bandwidth by size";
  plot.footnote =
      "Expected: latency and bandwidth of the straight line through the median "
      "transfer times of each series.";
  if (order.size() > kSeries) {
    plot.footnote +=
        fmt::format(" {} more series take less time.", order.size() - kSeries);
    order.resize(kSeries);
  }
  for (size_t s = 0; s < order.size(); ++s) {
    const LinkSeries& series = *order[s];
    plot.series.push_back(fmt::format("{} {}, {} ranks",
                                      CollectiveKindName(series.kind),
                                      series.description, series.ranks));
    for (const LinkSize& size : series.sizes) {
      const double rate =
          size.link_bytes / static_cast<double>(size.transfer_ns) * 1e9;
      plot.points.push_back(
          {s, size.link_bytes, rate,
           fmt::format("{}: {} in {}, {:.1f} GB/s", plot.series.back(),
                       HumanBytes(static_cast<double>(size.bytes)),
                       HumanTime(size.transfer_ns), rate / 1e9)});
    }
    if (series.bytes_per_ns > 0) {
      plot.curves.push_back(
          {s, series.latency_ns / 1e9, series.bytes_per_ns * 1e9});
    }
  }
  if (!plot.points.empty()) out.push_back({"bandwidth", DrawRates(plot)});
}

}  // namespace

std::vector<Diagram> DrawPictures(const ResultSet& tables,
                                  const std::vector<RankBlame>& blame,
                                  const std::vector<LinkSeries>& links) {
  std::vector<Diagram> out;
  if (const Table* steps = tables.Find("rank_steps")) {
    AddHeatMap(*steps, "exposed_comm_us", "exposed_heat_map",
               "Exposed communication by rank and step", out);
    AddHeatMap(*steps, "wait_us", "wait_heat_map",
               "Waiting for later ranks by rank and step", out);
  }
  AddStragglers(blame, out);
  AddBandwidth(links, out);
  return out;
}

}  // namespace lamina::dist
