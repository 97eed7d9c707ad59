// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/overlaps.h"

#include <algorithm>
#include <tuple>

#include "analysis/common/launchers.h"
#include "base/escape.h"
#include "base/interval_set.h"
#include "compat/tracelens/sheets.h"

namespace lamina::compat::tracelens {
namespace {

constexpr int64_t kNoiseNs = 1000;
constexpr size_t kMostPairs = 50'000'000;

int64_t Together(const Trace& trace, SliceId a, SliceId b) {
  return std::min(trace.End(a), trace.End(b)) -
         std::max(trace.Start(a), trace.Start(b));
}

std::optional<double> Rounded(const std::optional<double>& value) {
  return value ? std::optional(RoundHundredths(*value)) : std::nullopt;
}

}  // namespace

Result<Overlaps> Overlaps::Find(const Model& model) {
  const Trace& trace = model.trace();
  const tree::Tree& tree = model.tree();
  struct Active {
    SliceId slice;
    int64_t stream;
  };
  Overlaps out;
  out.partners_.resize(trace.device.size());
  const auto partners = [&](SliceId s) -> std::vector<SliceId>& {
    return out.partners_[trace.slices.detail[s.value]];
  };
  std::vector<Active> active;
  size_t pairs = 0;
  for (const SliceId s : trace.device_slices()) {  // by start
    const NodeId launch = tree.launch(s);
    if (!launch.valid() || trace.Duration(s) <= 0) continue;
    std::erase_if(active, [&](const Active& a) {
      return trace.End(a.slice) <= trace.Start(s);
    });
    const Active now{s, trace.Device(s)->stream};
    for (const Active& a : active) {
      if (now.stream != trace::kNoInt && now.stream == a.stream) continue;
      if (Together(trace, s, a.slice) < kNoiseNs) continue;
      partners(s).push_back(a.slice);
      partners(a.slice).push_back(s);
      if (++pairs > kMostPairs) {
        return Fail(UsageError(
            "⟨overlaps⟩: more than 50,000,000 pairs of device events overlap",
            "leave out ⟨overlaps⟩, or cut the trace with ⟨slice()⟩"));
      }
    }
    active.push_back(now);
  }
  for (auto& list : out.partners_) {
    std::sort(list.begin(), list.end(), [&](SliceId a, SliceId b) {
      return trace.Uid(a) < trace.Uid(b);
    });
  }
  return out;
}

OverlapInfo Overlaps::Of(const Trace& trace,
                         std::span<const SliceId> kernels) const {
  OverlapInfo info;
  const int64_t own_ns = analysis::UnionOf(trace, kernels);
  if (own_ns == 0) return info;
  const auto own = static_cast<double>(own_ns);
  std::vector<SliceId> order(kernels.begin(), kernels.end());
  std::sort(order.begin(), order.end(),
            [&](SliceId a, SliceId b) { return trace.Uid(a) < trace.Uid(b); });
  struct Group {
    std::string_view name;
    int64_t stream;
    double dur_us = 0;
    double share = 0;
    double count = 0;
  };
  std::vector<Group> groups;
  int64_t together_ns = 0;
  for (const SliceId kernel : order) {
    std::vector<Interval> common;
    for (const SliceId other : partners_[trace.slices.detail[kernel.value]]) {
      const std::string_view name = trace.Name(other);
      auto it =
          std::find_if(groups.begin(), groups.end(),
                       [&](const Group& group) { return group.name == name; });
      if (it == groups.end()) {
        groups.push_back({name, trace.Device(other)->stream});
        it = groups.end() - 1;
      }
      const double part =
          static_cast<double>(Together(trace, kernel, other)) / own;
      it->dur_us += Us(trace.Duration(other));
      it->share += RoundHundredths(part);
      ++it->count;
      common.push_back({std::max(trace.Start(kernel), trace.Start(other)),
                        std::min(trace.End(kernel), trace.End(other))});
    }
    together_ns += IntervalSet::Of(std::move(common)).length_ns();
  }
  if (groups.empty()) return info;
  info.names = "[";
  for (const Group& group : groups) {
    if (info.names.size() > 1) info.names += ", ";
    AppendPythonQuoted(info.names, group.name);
    KernelPlace& place = info.details.emplace_back();
    place.name = group.name;
    place.stream = group.stream;
    place.overlap = RoundHundredths(group.share / group.count);
    place.times_us = {RoundHundredths(group.dur_us / group.count)};
  }
  info.names += "]";
  info.share = RoundHundredths(static_cast<double>(together_ns) / own);
  return info;
}

OverlapInfo Overlaps::OfLauncher(const Model& model, NodeId node) const {
  const Launch* launch = model.LaunchOf(node);
  if (launch == nullptr) return {};
  return Of(model.trace(), model.launchers().Work(*launch->launcher));
}

OverlapInfo Overlaps::OfOp(const Model& model, NodeId node,
                           std::span<const SliceId> work) const {
  OverlapInfo info = OfLauncher(model, node);
  return info.share ? info : Of(model.trace(), work);
}

OverlapCells::OverlapCells(const std::vector<OverlapInfo>& instances) {
  std::vector<std::vector<KernelPlace>> lists;
  std::vector<double> shares;
  for (const OverlapInfo& info : instances) {
    lists.push_back(info.details);
    if (info.share) shares.push_back(*info.share);
  }
  const std::vector<KernelPlace> places = SummarizePlaces(lists);
  details = DetailsCell(places);
  truncated = TruncatedCell(places);
  share = Summary(std::move(shares));
}

void OverlapCells::AppendColumns(const std::string& details, Schema& schema) {
  schema.columns.push_back(Text(details));
  schema.columns.push_back(Text("trunc_overlapping_kernels_details"));
  for (const char* statistic : kStatistics)
    schema.columns.push_back(Number(std::string("overlap_pct_") + statistic));
}

void OverlapCells::AppendTo(bool rounded, std::vector<Value>& cells) const {
  cells.emplace_back(details);
  cells.emplace_back(truncated);
  if (!rounded) {
    AppendFive(cells, share);
    return;
  }
  Five five = share;
  if (five.mean && !five.std_dev) five.std_dev = 0;
  for (const auto& value :
       {five.mean, five.median, five.std_dev, five.min, five.max})
    cells.emplace_back(Rounded(value));
}

}  // namespace lamina::compat::tracelens
