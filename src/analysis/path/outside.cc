// SPDX-License-Identifier: Apache-2.0
#include "analysis/path/outside.h"

#include <algorithm>

namespace lamina::analysis::path {

std::vector<std::vector<OutsideFrame>> OutsideFrames(
    const host::HostModel& model) {
  const rules::PatternTable& rules = model.context().catalog.outside_table();
  const Trace& trace = model.trace();
  std::vector<std::vector<OutsideFrame>> out(model.threads().size());
  std::vector<uint32_t> thread_of(trace.tracks.size(), host::kNone);
  for (uint32_t t = 0; t < model.threads().size(); ++t)
    thread_of[model.threads()[t].track.value] = t;
  enum : int8_t { kUnknown, kNothing, kPerhaps, kWaits };
  std::vector<int8_t> names(trace.strings.size(), kUnknown);
  const uint32_t slices = trace.captured.empty()
                              ? static_cast<uint32_t>(trace.slices.size())
                              : trace.captured.first;
  for (uint32_t i = 0; i < slices; ++i) {
    const trace::Kind kind = trace.slices.kind[i];
    if (kind != trace::Kind::kPython && kind != trace::Kind::kAnnotation)
      continue;
    int8_t& known = names[trace.slices.name[i].value];
    if (known == kUnknown) {
      const int rule = rules.Find(trace.Text(trace.slices.name[i]));
      known = rule == rules::PatternTable::kNone    ? kNothing
              : rules.rule(rule).value == "outside" ? kWaits
              : rules.rule(rule).value == "perhaps" ? kPerhaps
                                                    : kNothing;
    }
    const std::string_view category =
        kind == trace::Kind::kAnnotation && known == kNothing
            ? trace.Category(SliceId(i))
            : std::string_view();
    const bool op = category == "cpu_op" || category == "operator";
    if (known == kNothing && !op) continue;
    const uint32_t thread = thread_of[trace.slices.track[i].value];
    if (thread != host::kNone)
      out[thread].push_back({SliceId(i), known == kWaits, op});
  }
  for (std::vector<OutsideFrame>& frames : out) {
    std::stable_sort(frames.begin(), frames.end(),
                     [&](const OutsideFrame& a, const OutsideFrame& b) {
                       return trace.Start(a.slice) < trace.Start(b.slice);
                     });
  }
  return out;
}

}  // namespace lamina::analysis::path
