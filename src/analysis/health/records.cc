// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <limits>
#include <string>

#include "analysis/health/checks.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "trace/categories.h"
#include "trace/module_frames.h"

namespace lamina::analysis::health {

namespace {

// Begin and end of device work are told apart no better than this.
constexpr int64_t kClockNs = 1'000;
// Longer overlaps are not the drain of a kernel.
constexpr int64_t kLongestDrainNs = 20'000;

// Whether a kernel may have begun before the one in front of it had ended
// (programmatic dependent launch): it or that one was launched with attributes
// or from a graph, whose edges carry them, and they overlap a little.
bool IsDependentLaunch(const Context& context, SliceId s, SliceId before,
                       int64_t overlap_ns) {
  const Trace& trace = context.trace;
  if (trace.KindOf(s) != trace::Kind::kKernel ||
      trace.KindOf(before) != trace::Kind::kKernel ||
      overlap_ns > kLongestDrainNs || trace.End(s) < trace.End(before))
    return false;
  const NodeId launch = context.tree.launch(s);
  if (!launch.valid()) return false;
  const std::string_view name = context.tree.name(launch);
  return name.find("LaunchKernelEx") != std::string_view::npos ||
         name.starts_with("cudaGraphLaunch") ||
         name.starts_with("cuGraphLaunch");
}

}  // namespace

void CheckStructure(const Context& context, CheckTable& out) {
  const Trace& trace = context.trace;
  const size_t dropped = context.tree.dropped_by_overlap();
  if (dropped > 0) {
    out.Add({.check = "dropped_by_overlap",
             .status = "warn",
             .value = GroupDigits(static_cast<int64_t>(dropped)),
             .meaning = "Host events that overlap another by 1 us or more "
                        "without nesting; "
                        "they are not in the call tree.",
             .count = static_cast<int64_t>(dropped)});
  }
  const size_t hanging = context.tree.hanging();
  if (hanging > 0) {
    out.Add({.check = "hanging_over",
             .status = "info",
             .value = GroupDigits(static_cast<int64_t>(hanging)),
             .meaning = "Host events that end 1 us or more after the event in "
                        "which they begin: they count below it where most of "
                        "them lies in it, else beside it.",
             .count = static_cast<int64_t>(hanging)});
  }
  const size_t ambiguous = context.tree.ambiguous();
  if (ambiguous > 0) {
    out.Add({.check = "shared_correlation",
             .status = "warn",
             .value = Counted(ambiguous, "device event"),
             .meaning = "Several launches carry the same correlation id. Where "
                        "there are as many launches as events they were joined "
                        "in order; the others stay unlinked.",
             .count = static_cast<int64_t>(ambiguous)});
  }
  const size_t popped = context.tree.popped_by_overlap();
  if (popped > 0) {
    out.Add(
        {.check = "closed_early_by_overlap",
         .status = "info",
         .value = GroupDigits(static_cast<int64_t>(popped)),
         .meaning =
             "Host events that bleed over the end of their parent by less than "
             "1 us; they count as its sibling.",
         .count = static_cast<int64_t>(popped)});
  }
  // Work of one stream runs in order: overlap means clipped or bad times, but
  // for kernels that were launched to begin while the one before drains.
  size_t overlaps = 0;
  int64_t longest_ns = 0;
  size_t dependent = 0;
  int64_t dependent_ns = 0;
  uint64_t offset = 0;
  size_t long_ones = 0;
  constexpr int64_t kDay = int64_t{86400} * 1000000000;
  for (const trace::Stream& stream : trace.streams) {
    int64_t end = std::numeric_limits<int64_t>::min();
    bool first = true;
    SliceId before;
    for (const SliceId s : stream.slices) {
      if (!first && trace.Start(s) < end) {
        if (IsDependentLaunch(context, s, before, end - trace.Start(s))) {
          ++dependent;
          dependent_ns += end - trace.Start(s);
        } else {
          if (overlaps == 0) offset = trace.slices.offset[s.value];
          ++overlaps;
          longest_ns = std::max(longest_ns, end - trace.Start(s));
        }
      }
      before = s;
      first = false;
      end = std::max(end, trace.End(s));
      long_ones += trace.Duration(s) > kDay;
    }
  }
  if (dependent > 0) {
    out.Add(
        {.check = "programmatic_dependent_launches",
         .status = "info",
         .value = fmt::format("{} kernels, {}",
                              GroupDigits(static_cast<int64_t>(dependent)),
                              HumanTime(dependent_ns)),
         .meaning =
             "Kernels that begin while the one before on their stream drains: "
             "launched with attributes (cudaLaunchKernelExC, "
             "cuLaunchKernelEx), "
             "which allows programmatic dependent launch. busy_us counts the "
             "overlap once, kernel_time_us twice.",
         .count = static_cast<int64_t>(dependent)});
  }
  if (overlaps > 0) {
    const bool rounding = longest_ns <= kClockNs;
    out.Add(
        {.check = "overlaps_on_a_stream",
         .status = rounding ? "info" : "warn",
         .value = fmt::format("{}, {} at most",
                              GroupDigits(static_cast<int64_t>(overlaps)),
                              HumanTime(longest_ns)),
         .meaning =
             rounding
                 ? "Device events of one stream overlap by less than clocks "
                   "are exact. busy_us counts the overlap once, kernel_time_us "
                   "twice."
                 : "Device events of one stream overlap, which hardware does "
                   "not do: clock effects or bad durations. busy_us counts the "
                   "overlap once, kernel_time_us twice.",
         .count = static_cast<int64_t>(overlaps),
         .first_offset = offset != trace::Diagnostics::kNoOffset
                             ? std::optional(static_cast<int64_t>(offset))
                             : std::nullopt});
  }
  if (long_ones > 0) {
    out.Add({.check = "suspicious_kernels",
             .status = "warn",
             .value = GroupDigits(static_cast<int64_t>(long_ones)),
             .meaning = "Device events longer than a day.",
             .count = static_cast<int64_t>(long_ones)});
  }
}

namespace {

// Slices of a kind that lamina does not know are in no other table: a row for
// each of their categories, the longest first.
void Categories(const Trace& trace, CheckTable& out) {
  struct Sum {
    uint8_t category = 0;
    int64_t count = 0;
    int64_t time_ns = 0;
    uint64_t offset = 0;
  };
  std::array<Sum, 256> sums{};
  const uint32_t recorded = trace::RecordedSlices(trace);
  for (uint32_t i = 0; i < recorded; ++i) {
    if (trace.slices.kind[i] != trace::Kind::kOther) continue;
    Sum& sum = sums[trace.slices.category[i]];
    if (sum.count++ == 0) sum.offset = trace.slices.offset[i];
    sum.time_ns += trace.slices.dur_ns[i];
    sum.offset = std::min(sum.offset, trace.slices.offset[i]);
  }
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i].category = static_cast<uint8_t>(i);
  const auto name = [&](const Sum& sum) -> std::string_view {
    return sum.category < trace.categories.size()
               ? trace.Text(trace.categories[sum.category])
               : std::string_view();
  };
  std::sort(sums.begin(), sums.end(), [&](const Sum& a, const Sum& b) {
    if (a.time_ns != b.time_ns) return a.time_ns > b.time_ns;
    return a.category < b.category;
  });
  for (const Sum& sum : sums) {
    if (sum.count == 0) continue;
    const std::string_view why = trace::WhyUnused(name(sum));
    const std::string category =
        name(sum).empty() ? "without a category" : Shorten(name(sum), 60);
    out.Add(
        {.check = "unknown_category",
         .status = why.empty() ? "lost" : "info",
         .value =
             fmt::format("{}: {}, {}", category,
                         Counted(static_cast<uint64_t>(sum.count), "event"),
                         HumanTime(sum.time_ns)),
         .meaning = !why.empty()
                        ? why
                        : "Events of a category (\"cat\") that lamina does "
                          "not know: their time is in no other table. If "
                          "they are work of a device, busy time is too low.",
         .count = sum.count,
         .first_offset = sum.offset != trace::Diagnostics::kNoOffset
                             ? std::optional(static_cast<int64_t>(sum.offset))
                             : std::nullopt});
  }
}

}  // namespace

void CheckRecords(const Context& context, CheckTable& out) {
  const Trace& trace = context.trace;
  Categories(trace, out);
  for (const trace::Diagnostic& d : trace.diagnostics.Sorted()) {
    std::string_view status = "info";
    if (d.effect == trace::Effect::kLost) status = "lost";
    if (d.effect == trace::Effect::kOddity ||
        d.effect == trace::Effect::kRepaired)
      status = "warn";
    std::string value = GroupDigits(static_cast<int64_t>(d.count));
    if (d.bytes > 0) value += ", " + HumanBytes(static_cast<double>(d.bytes));
    if (!d.first_offsets.empty())
      value += fmt::format(", first at byte {}", d.first_offsets[0]);
    out.Add({.check = d.reason,
             .status = status,
             .value = value,
             .meaning = d.text,
             .count = static_cast<int64_t>(d.count),
             .first_offset = d.first_offsets.empty()
                                 ? std::nullopt
                                 : std::optional(static_cast<int64_t>(
                                       d.first_offsets[0]))});
  }
  out.Add({.check = "events",
           .status = "info",
           .value = GroupDigits(static_cast<int64_t>(trace.info.events)),
           .meaning = "Records of all phases in the input.",
           .count = static_cast<int64_t>(trace.info.events)});
}

}  // namespace lamina::analysis::health
