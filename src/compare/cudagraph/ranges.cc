// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/ranges.h"

#include <algorithm>

namespace lamina::cudagraph {

using trace::Kind;
using trace::kNoRow;
using trace::SliceId;

Ranges::Ranges(const trace::Trace& trace, const RE2& tags)
    : trace_(trace),
      is_tag_(trace.strings.size(), 2),
      tracks_(trace.tracks.size()) {
  const trace::Slices& slices = trace.slices;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (slices.kind[i] != Kind::kAnnotation && slices.kind[i] != Kind::kOp)
      continue;
    uint8_t& tag = is_tag_[slices.name[i].value];
    if (tag == 2) {
      const std::string_view name = trace.strings[slices.name[i]];
      tag = RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), tags);
    }
    if (slices.kind[i] == Kind::kOp && tag == 0) continue;
    const int64_t start = slices.start_ns[i];
    tracks_[slices.track[i].value].push_back(
        {start, start + slices.dur_ns[i], SliceId(i), kNoRow});
  }
  for (std::vector<Range>& ranges : tracks_) {
    std::stable_sort(ranges.begin(), ranges.end(),
                     [](const Range& a, const Range& b) {
                       return a.start_ns != b.start_ns ? a.start_ns < b.start_ns
                                                       : a.end_ns > b.end_ns;
                     });
    std::vector<uint32_t> stack;
    for (uint32_t i = 0; i < ranges.size(); ++i) {
      while (!stack.empty() &&
             ranges[stack.back()].end_ns <= ranges[i].start_ns)
        stack.pop_back();
      if (!stack.empty()) ranges[i].below = stack.back();
      stack.push_back(i);
    }
  }
}

std::vector<SliceId> Ranges::At(trace::TrackId track, int64_t at) const {
  const std::vector<Range>& ranges = tracks_[track.value];
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), at,
      [](int64_t time, const Range& r) { return time < r.start_ns; });
  std::vector<SliceId> found;
  if (after == ranges.begin()) return found;
  // Whatever has not ended lies on the stack below the last to begin.
  for (auto i = static_cast<uint32_t>(after - ranges.begin() - 1); i != kNoRow;
       i = ranges[i].below) {
    if (at < ranges[i].end_ns) found.push_back(ranges[i].slice);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

bool Ranges::IsTag(SliceId range) const {
  return is_tag_[trace_.slices.name[range.value].value] == 1;
}

}  // namespace lamina::cudagraph
