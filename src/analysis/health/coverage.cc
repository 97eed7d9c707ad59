// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <string>
#include <vector>

#include "analysis/common/cost_view.h"
#include "analysis/common/device_advice.h"
#include "analysis/common/host_view.h"
#include "analysis/health/checks.h"
#include "base/decimal.h"

namespace lamina::analysis::health {
namespace {

std::string PercentText(double percent) {
  return fmt::format("{:.1f} %", percent);
}

// Device work that is in no table but unread_events. Events of unknown
// categories have rows by what the reader says of the records.
void CheckUnread(const Trace& trace, CheckTable& out) {
  size_t events = 0;
  int64_t time_ns = 0;
  for (const UnreadEvents& u : FindUnread(trace)) {
    if (!u.device) continue;
    events += u.events;
    time_ns += u.time_ns;
  }
  if (events == 0) return;
  out.Add(
      {.check = "unread_device_events",
       .status = "warn",
       .value = fmt::format("{} events, {}",
                            GroupDigits(static_cast<int64_t>(events)),
                            HumanTime(time_ns)),
       .meaning =
           "Device work that lamina knows but does not read yet: it is in no "
           "table but unread_events.",
       .count = static_cast<int64_t>(events)});
}

}  // namespace

void CheckCoverage(const Context& context, CheckTable& out) {
  const Trace& trace = context.trace;
  CheckUnread(trace, out);
  int64_t all = 0;
  int64_t linked = 0;
  int64_t categorised = 0;
  size_t linked_count = 0;
  std::vector<int64_t> by_reason(tree::kUnlinkedReasons, 0);
  std::vector<size_t> count_by_reason(tree::kUnlinkedReasons, 0);
  const size_t other = context.catalog.FamilyIndex("other");
  for (const SliceId s : trace.device_slices()) {
    const int64_t dur = trace.Duration(s);
    all += dur;
    const auto reason = static_cast<size_t>(context.tree.unlinked(s));
    by_reason[reason] += dur;
    ++count_by_reason[reason];
    if (context.tree.launch(s).valid()) {
      linked += dur;
      ++linked_count;
    }
    if (context.device.family(s) != other) categorised += dur;
  }
  const size_t count = trace.device_slices().size();
  if (count == 0) {
    const auto unread = FindUnread(trace);
    const bool recorded = !unread.empty() && unread.front().device;
    out.Add({.check = "device_work",
             .status = "warn",
             .value = "no GPU events",
             .meaning =
                 recorded ? "The device work of the file is not read yet: see "
                            "unread_events."
                          : DeviceAdvice(trace),
             .count = 0});
    return;
  }
  const auto share = [&](int64_t part) {
    return all > 0
               ? 100.0 * static_cast<double>(part) / static_cast<double>(all)
               : 100.0;
  };
  const double linked_share = share(linked);
  out.Add({.check = "linked_device_time",
           .status = linked_share >= 99.5 ? "ok" : "warn",
           .value = PercentText(linked_share),
           .meaning =
               linked_share >= 99.5
                   ? "Device time whose launch is in the trace."
                   : "The rest has no launch in the trace: it is in "
                     "gpu_timeline and "
                     "kernels, and in op tables only as the row \"unlinked\".",
           .count = static_cast<int64_t>(linked_count),
           .percent = linked_share});
  for (int r = 1; r < tree::kUnlinkedReasons; ++r) {
    const auto i = static_cast<size_t>(r);
    if (count_by_reason[i] == 0) continue;
    static constexpr std::string_view kMeanings[] = {
        "",
        "Device events carry neither correlation nor External id.",
        "Launched before the recording began, or by a call that was not "
        "traced.",
        "The flow event between call and work is missing.",
        "The trace has no host events: record CPU activity too.",
        "Several launches carry the correlation of these events, and not as "
        "many as there are events: whose they are is not known."};
    out.Add({.check = "unlinked_" +
                      std::string(UnlinkedName(static_cast<tree::Unlinked>(r))),
             .status = "info",
             .value = fmt::format(
                 "{} events, {}",
                 GroupDigits(static_cast<int64_t>(count_by_reason[i])),
                 HumanTime(by_reason[i])),
             .meaning = kMeanings[r],
             .count = static_cast<int64_t>(count_by_reason[i]),
             .percent = share(by_reason[i])});
  }
  const double known = share(categorised);
  out.Add(
      {.check = "categorised_device_time",
       .status = known >= 95 ? "ok" : "warn",
       .value = PercentText(known),
       .meaning = known >= 95
                      ? "Device time in a known category."
                      : "The rest is in the category \"other\": add its ops or "
                        "kernels to a file of rules.",
       .percent = known});
}

Status CheckCosts(const Context& context, CheckTable& out) {
  const Trace& trace = context.trace;
  if (trace.device_slices().empty()) return {};
  LAMINA_ASSIGN(const auto* const efficiency, context.Get<Efficiency>());
  const CostView& view = *efficiency->costs;
  int64_t all = 0;
  int64_t costed = 0;
  int64_t estimated = 0;
  for (const CostView::Call& call : view.calls()) {
    const CostView::Group& group = view.groups()[call.group];
    int64_t sum = 0;
    for (const SliceId s : view.Work(call)) sum += trace.Duration(s);
    all += sum;
    if (!group.cost) continue;
    costed += sum;
    if (group.cost->fidelity == cost::Fidelity::kEstimated) estimated += sum;
  }
  if (all == 0) return {};
  const auto share = [&](int64_t part) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(all);
  };
  out.Add({.check = "modelled_device_time",
           .status = share(costed) >= 90 ? "ok" : "info",
           .value = fmt::format("{}, {} estimated", PercentText(share(costed)),
                                PercentText(share(estimated))),
           .meaning = "Linked device time without communication whose op has a "
                      "cost model; "
                      "op_efficiency says why the rest has none.",
           .percent = share(costed)});
  const auto& device = efficiency->device;
  if (!device) {
    const std::string name =
        trace.info.devices.empty() ? "" : trace.info.devices[0].name;
    out.Add({.check = "roofline_device",
             .status = "info",
             .value = name.empty() ? "not recorded" : name,
             .meaning = "No rooflines: give the device by its name or as a "
                        "file (device)."});
    return {};
  }
  std::string meaning = "Peaks: " + device->source + ".";
  if (device->assumed)
    meaning += " Told by memory and capability: the trace has no name.";
  if (device->scaled) meaning += " Scaled to the multiprocessors of the trace.";
  out.Add({.check = "roofline_device",
           .status = device->assumed ? "info" : "ok",
           .value = device->title,
           .meaning = meaning});
  return {};
}

}  // namespace lamina::analysis::health
