// SPDX-License-Identifier: Apache-2.0
#include "dist/links.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace lamina::dist {
namespace {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

// Theil and Sen: the median of the slopes of all pairs.
void Fit(LinkSeries& series) {
  const auto& sizes = series.sizes;
  // Sizes that are nearly the same say nothing about the slope.
  if (sizes.size() < 2 ||
      sizes.back().link_bytes < 2 * sizes.front().link_bytes)
    return;
  std::vector<double> slopes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (size_t j = i + 1; j < sizes.size(); ++j) {
      slopes.push_back(
          static_cast<double>(sizes[j].transfer_ns - sizes[i].transfer_ns) /
          (sizes[j].link_bytes - sizes[i].link_bytes));
    }
  }
  const double slope = Median(std::move(slopes));
  if (!(slope > 0)) return;
  std::vector<double> rests;
  for (const LinkSize& size : sizes) {
    rests.push_back(static_cast<double>(size.transfer_ns) -
                    slope * size.link_bytes);
  }
  series.bytes_per_ns = 1 / slope;
  series.latency_ns = std::max(0.0, Median(std::move(rests)));
}

}  // namespace

std::vector<LinkSeries> FindLinks(const Measured& measured) {
  using Key = std::tuple<std::string_view, CollectiveKind, int64_t>;
  std::map<Key, std::map<int64_t, std::vector<int64_t>>> found;
  for (const MeasuredCall& call : measured.calls) {
    const bool whole = static_cast<int64_t>(call.members.size()) >= call.ranks;
    if (!call.comparable() || !whole || call.bytes <= 0 ||
        call.transfer_ns <= 0 || BusFactor(call.kind, call.ranks) <= 0)
      continue;
    const MeasuredGroup& group = measured.groups[call.group];
    const std::string_view name =
        group.description.empty() ? group.name : group.description;
    found[Key{name, call.kind, call.ranks}][call.bytes].push_back(
        call.transfer_ns);
  }
  std::vector<LinkSeries> out;
  for (auto& [key, sizes] : found) {
    LinkSeries series;
    series.description = std::get<0>(key);
    series.kind = std::get<1>(key);
    series.ranks = std::get<2>(key);
    for (auto& [bytes, times] : sizes) {
      std::sort(times.begin(), times.end());
      series.sizes.push_back(
          {bytes,
           static_cast<double>(bytes) * BusFactor(series.kind, series.ranks),
           times[times.size() / 2], times.size()});
    }
    Fit(series);
    out.push_back(std::move(series));
  }
  return out;
}

}  // namespace lamina::dist
