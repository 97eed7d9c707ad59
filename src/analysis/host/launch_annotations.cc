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
    for (const Point& p : points) {
      while (!open.empty() && open.back().end <= p.time) open.pop_back();
      if (p.call == kNone) {
        if (!open.empty()) outer_.emplace_back(p.slice, open.back().slice);
        open.push_back(p);
      } else if (!open.empty()) {
        of_call_[p.call] = open.back().slice;
      }
    }
  }
  std::sort(outer_.begin(), outer_.end());
}

SliceId LaunchAnnotations::Outer(SliceId range) const {
  const auto it = std::lower_bound(outer_.begin(), outer_.end(),
                                   std::pair(range, SliceId(0)));
  return it != outer_.end() && it->first == range ? it->second : SliceId();
}

}  // namespace lamina::analysis::host
