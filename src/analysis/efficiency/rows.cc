// SPDX-License-Identifier: Apache-2.0
#include "analysis/efficiency/rows.h"

#include <algorithm>
#include <map>

#include "analysis/common/launchers.h"
#include "base/parallel.h"
#include "base/text.h"

namespace lamina::analysis::efficiency {
namespace {

// True for a copy between host and device: it is bound by the link between
// them, so the memory of the device says nothing about it.
bool CrossesHostLink(const trace::Trace& trace, SliceId s) {
  if (trace.KindOf(s) != trace::Kind::kMemcpy) return false;
  const std::string_view name = trace.Name(s);
  for (const std::string_view direction :
       {"HtoD", "DtoH", "HostToDevice", "DeviceToHost"}) {
    if (Contains(name, direction)) return true;
  }
  return false;
}

// What a kernel takes that does next to nothing: of the shortest tenth of the
// trace the longest, at most 3 us.
int64_t FloorOf(const Trace& trace) {
  constexpr int64_t kMostNs = 3000;
  std::vector<int64_t> times;
  for (const SliceId s : trace.device_slices()) {
    if (trace.KindOf(s) == trace::Kind::kKernel)
      times.push_back(trace.Duration(s));
  }
  if (times.empty()) return 0;
  const auto tenth = times.begin() + static_cast<ptrdiff_t>(times.size() / 10);
  std::nth_element(times.begin(), tenth, times.end());
  return std::min(*tenth, kMostNs);
}

Row MakeRow(const Context& context, const Efficiency& efficiency,
            const CostView::Group& group, int64_t floor_ns) {
  const CostView& view = *efficiency.costs;
  Row row;
  row.group = &group;
  std::vector<int64_t> busy, kernels_of;  // by call
  std::map<size_t, int64_t> families;
  bool host_link = false;
  for (const uint32_t c : group.calls) {
    const auto work = view.Work(view.calls()[c]);
    if (work.empty()) continue;
    row.kernels += work.size();
    row.kernel_time_ns += SumOf(context.trace, work);
    busy.push_back(UnionOf(context.trace, work));
    kernels_of.push_back(static_cast<int64_t>(work.size()));
    row.busy_ns += busy.back();
    for (const SliceId s : work) {
      families[context.device.family(s)] += context.trace.Duration(s);
      if (context.trace.KindOf(s) == trace::Kind::kKernel &&
          context.trace.Duration(s) < context.settings.short_kernel_ns)
        row.short_ns += context.trace.Duration(s);
      host_link = host_link || CrossesHostLink(context.trace, s);
    }
  }
  if (busy.empty()) return row;
  size_t best = families.begin()->first;
  for (const auto& [family, ns] : families) {
    if (ns > families[best]) best = family;
  }
  row.family = context.catalog.family(best).name;
  if (group.cost && efficiency.device && !host_link) {
    row.roofline =
        cost::RooflineOf(*group.cost, *efficiency.device, group.spec);
  }
  if (row.roofline) {
    row.roofline_ns = RoundNs(row.roofline->seconds * 1e9);
    for (size_t i = 0; i < busy.size(); ++i) {
      row.above_ns += std::max<int64_t>(0, busy[i] - row.roofline_ns);
      const int64_t bound = std::max(
          row.roofline_ns, std::min(busy[i], floor_ns * kernels_of[i]));
      row.bound_ns += bound;
      row.above_bound_ns += std::max<int64_t>(0, busy[i] - bound);
    }
  }
  row.stats = Summarize(busy);
  return row;
}

}  // namespace

std::vector<Row> MakeRows(const Context& context,
                          const Efficiency& efficiency) {
  const auto& groups = efficiency.costs->groups();
  std::vector<Row> rows(groups.size());
  const int64_t floor_ns = FloorOf(context.trace);
  ParallelFor(context.settings.threads, groups.size(), [&](size_t g) {
    rows[g] = MakeRow(context, efficiency, groups[g], floor_ns);
  });
  std::erase_if(rows, [](const Row& row) { return row.kernels == 0; });
  const auto uid = [&](const Row& row) {
    return context.trace.Uid(context.tree.slice(row.group->first));
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    if (a.kernel_time_ns != b.kernel_time_ns)
      return a.kernel_time_ns > b.kernel_time_ns;
    return uid(a) < uid(b);
  });
  return rows;
}

}  // namespace lamina::analysis::efficiency
