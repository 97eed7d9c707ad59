// SPDX-License-Identifier: Apache-2.0
#include "analysis/host/launch_annotations.h"

#include <algorithm>
#include <map>

namespace lamina::analysis::host {

LaunchAnnotations::LaunchAnnotations(const HostModel& model)
    : model_(&model), of_call_(model.calls().size()) {
  const Trace& trace = model.trace();
  struct Point {
    int64_t time;
    int64_t end;    // of a range
    uint32_t call;  // kNone: a range
    SliceId slice;
  };
  std::map<uint32_t, std::vector<Point>> tracks;
  for (uint32_t c = 0; c < model.calls().size(); ++c) {
    const SliceId s = model.calls()[c].slice;
    tracks[trace.slices.track[s.value].value].push_back(
        {trace.Start(s), 0, c, s});
  }
  const uint32_t count = trace.captured.empty()
                             ? static_cast<uint32_t>(trace.slices.size())
                             : trace.captured.first;
  for (uint32_t i = 0; i < count; ++i) {
    if (trace.slices.kind[i] != trace::Kind::kAnnotation) continue;
    const auto it = tracks.find(trace.slices.track[i].value);
    if (it == tracks.end()) continue;
    const SliceId s(i);
    it->second.push_back({trace.Start(s), trace.End(s), kNone, s});
  }
  for (auto& [track, points] : tracks) {
    // Ranges before calls of the same start, longer ranges first.
    std::stable_sort(points.begin(), points.end(),
                     [](const Point& a, const Point& b) {
                       if (a.time != b.time) return a.time < b.time;
                       if ((a.call == kNone) != (b.call == kNone))
                         return a.call == kNone;
                       return a.end > b.end;
                     });
    std::vector<Point> open;
    bool overlap = false;  // one of them ends before one that began in it
    for (const Point& p : points) {
      while (!open.empty() && open.back().end <= p.time) open.pop_back();
      if (overlap) {
        std::erase_if(open, [&](const Point& o) { return o.end <= p.time; });
        overlap = !std::is_sorted(
            open.begin(), open.end(),
            [](const Point& a, const Point& b) { return a.end > b.end; });
      }
      if (p.call == kNone) {
        const auto around =
            std::find_if(open.rbegin(), open.rend(),
                         [&](const Point& o) { return o.end >= p.end; });
        if (around != open.rend()) outer_.emplace_back(p.slice, around->slice);
        overlap |= around != open.rbegin();
        open.push_back(p);
      } else if (!open.empty()) {
        of_call_[p.call] = open.back().slice;
        if (!overlap) continue;
        int64_t end = open.back().end;
        for (size_t i = open.size() - 1; i-- > 0;) {
          if (open[i].end < end) beside_.emplace_back(p.call, open[i].slice);
          end = std::max(end, open[i].end);
        }
      }
    }
  }
  std::sort(beside_.begin(), beside_.end());
  std::sort(outer_.begin(), outer_.end());
}

SliceId LaunchAnnotations::Outer(SliceId range) const {
  const auto it = std::lower_bound(outer_.begin(), outer_.end(),
                                   std::pair(range, SliceId(0)));
  return it != outer_.end() && it->first == range ? it->second : SliceId();
}

std::vector<SliceId> LaunchAnnotations::AllOf(SliceId work) const {
  std::vector<SliceId> ranges;
  for (SliceId range = Of(work); range.valid(); range = Outer(range))
    ranges.push_back(range);
  if (beside_.empty() || ranges.empty()) return ranges;
  const uint32_t call = model_->call(work);
  for (auto it = std::lower_bound(beside_.begin(), beside_.end(),
                                  std::pair(call, SliceId(0)));
       it != beside_.end() && it->first == call; ++it)
    ranges.push_back(it->second);
  return ranges;
}

}  // namespace lamina::analysis::host
