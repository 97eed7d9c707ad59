// SPDX-License-Identifier: Apache-2.0
//
// Ranges of the host that name modules become frames: first which ranges are
// calls of modules, whole or in two parts, then slices of them, nested like
// those of a profiler. n log n in ranges.

#include "trace/module_frames.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <span>
#include <tuple>
#include <vector>

#include "base/interval_set.h"

namespace lamina::trace {

// Ranges of the host that are calls of modules, whole or in two parts.

struct ModuleRange {
  TrackId track;
  Interval time;
  SliceId slice;
  SliceId last;  // of a call in two parts the end, else as `slice`
  const ModuleMarker* marker = nullptr;
};

// Outer ranges of a thread before inner ones.
void SortByNesting(const Trace& trace, std::vector<ModuleRange>& ranges);

// Joins the begin and the end of each call to one range. Calls nest: an end
// closes the innermost open call of its path. A recording may be cut within a
// call: when all that follows the begin of a call without an end is below its
// path, it lasts as long as its thread, and so backwards for an end without a
// begin. What else has no partner is a range of its own. The ranges are in
// order of nesting, and so is the result.
std::vector<ModuleRange> JoinParts(const Trace& trace,
                                   const std::vector<ModuleRange>& ranges);

namespace {

using Extent = ModuleMarker::Extent;

// Open calls that are looked at for an end, from the inside: keeps the work
// linear, however deep a file nests.
constexpr size_t kMostOpen = 64;

// What some paths have in common.
class CommonPath {
 public:
  // Whether all of them are below `path`.
  bool IsBelow(const std::vector<StringId>& path) const {
    return none_ || (shortest_ > path.size() && common_.size() >= path.size() &&
                     std::equal(path.begin(), path.end(), common_.begin()));
  }
  void Add(const std::vector<StringId>& path) {
    if (none_) {
      common_ = path;
      shortest_ = path.size();
      none_ = false;
      return;
    }
    common_.erase(
        std::mismatch(common_.begin(), common_.end(), path.begin(), path.end())
            .first,
        common_.end());
    shortest_ = std::min(shortest_, path.size());
  }

 private:
  std::vector<StringId> common_;
  size_t shortest_ = 0;
  bool none_ = true;
};

// The parts of one thread.
class Joiner {
 public:
  explicit Joiner(std::span<const ModuleRange> ranges)
      : out_(ranges.begin(), ranges.end()),
        joined_(ranges.size(), false),
        dropped_(ranges.size(), false) {}

  // `thread`: from the first to the last moment of the thread.
  void Run(const Interval& thread) {
    for (size_t i = 0; i < out_.size(); ++i) {
      const Extent extent = ExtentOf(i);
      if (extent == Extent::kBegin) open_.push_back(i);
      if (extent == Extent::kEnd) Close(i);
    }
    CommonPath after;
    for (size_t i = out_.size(); i-- > 0;) {
      if (ExtentOf(i) == Extent::kWhole) continue;
      if (ExtentOf(i) == Extent::kBegin && !joined_[i] &&
          after.IsBelow(out_[i].marker->path))
        out_[i].time.end_ns = std::max(out_[i].time.end_ns, thread.end_ns);
      after.Add(out_[i].marker->path);
    }
    CommonPath before;
    for (size_t i = 0; i < out_.size(); ++i) {
      if (ExtentOf(i) == Extent::kWhole) continue;
      if (ExtentOf(i) == Extent::kEnd && !dropped_[i] &&
          before.IsBelow(out_[i].marker->path))
        out_[i].time.start_ns =
            std::min(out_[i].time.start_ns, thread.start_ns);
      before.Add(out_[i].marker->path);
    }
  }

  void AppendTo(std::vector<ModuleRange>& ranges) const {
    for (size_t i = 0; i < out_.size(); ++i) {
      if (!dropped_[i]) ranges.push_back(out_[i]);
    }
  }

 private:
  Extent ExtentOf(size_t i) const { return out_[i].marker->extent; }

  void Close(size_t end) {
    const ModuleMarker& marker = *out_[end].marker;
    const auto last = open_.rbegin() +
                      static_cast<ptrdiff_t>(std::min(open_.size(), kMostOpen));
    const auto begin = std::find_if(open_.rbegin(), last, [&](size_t i) {
      const ModuleMarker& other = *out_[i].marker;
      return other.backward == marker.backward && other.path == marker.path;
    });
    if (begin == last) return;
    Interval& call = out_[*begin].time;
    call.end_ns = std::max(call.end_ns, out_[end].time.end_ns);
    out_[*begin].last = out_[end].slice;
    joined_[*begin] = true;
    dropped_[end] = true;
    open_.erase(std::prev(begin.base()), open_.end());
  }

  std::vector<ModuleRange> out_;
  std::vector<bool> joined_;   // a begin that has its end
  std::vector<bool> dropped_;  // an end that has its begin
  std::vector<size_t> open_;
};

// When the threads that write parts of calls begin and end.
absl::flat_hash_map<TrackId, Interval> ThreadsWithParts(
    const Trace& trace, const std::vector<ModuleRange>& ranges) {
  absl::flat_hash_map<TrackId, Interval> threads;
  for (const ModuleRange& range : ranges) {
    if (range.marker->extent != Extent::kWhole)
      threads.try_emplace(range.track, range.time);
  }
  if (threads.empty()) return threads;
  const Slices& slices = trace.slices;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    const auto it = threads.find(slices.track[i]);
    if (it == threads.end()) continue;
    Interval& time = it->second;
    time.start_ns = std::min(time.start_ns, trace.Start(SliceId(i)));
    time.end_ns = std::max(time.end_ns, trace.End(SliceId(i)));
  }
  return threads;
}

}  // namespace

void SortByNesting(const Trace& trace, std::vector<ModuleRange>& ranges) {
  const auto key = [&](const ModuleRange& r) {
    return std::tuple(r.track.value, r.time.start_ns, -r.time.end_ns,
                      r.marker->path.size(), trace.Uid(r.slice));
  };
  std::sort(ranges.begin(), ranges.end(),
            [&](const ModuleRange& a, const ModuleRange& b) {
              return key(a) < key(b);
            });
}

std::vector<ModuleRange> JoinParts(const Trace& trace,
                                   const std::vector<ModuleRange>& ranges) {
  const auto threads = ThreadsWithParts(trace, ranges);
  if (threads.empty()) return ranges;
  std::vector<ModuleRange> out;
  for (size_t begin = 0; begin < ranges.size();) {
    size_t end = begin;
    while (end < ranges.size() && ranges[end].track == ranges[begin].track)
      ++end;
    Joiner joiner(
        std::span<const ModuleRange>(ranges).subspan(begin, end - begin));
    if (const auto thread = threads.find(ranges[begin].track);
        thread != threads.end())
      joiner.Run(thread->second);
    joiner.AppendTo(out);
    begin = end;
  }
  SortByNesting(trace, out);
  return out;
}

namespace {

using Path = std::vector<StringId>;

// PythonArgs::module_id of frames; profilers count from 0.
constexpr int32_t kForwardFrame = -2;
constexpr int32_t kBackwardFrame = -3;

struct Frame {
  StringId name;
  int64_t start_ns;
  int64_t end_ns;
  SliceId range, last;  // `last` is invalid where no range stands for the call
  bool backward;
};

// Calls that are looked at around a range, from the inside: keeps the sweep
// linear, however deep a file nests.
constexpr size_t kMostAround = 64;

size_t CommonPrefix(const Path& a, const Path& b) {
  const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return static_cast<size_t>(at - a.begin());
}

// The frames of one thread; ranges come in order of nesting.
class ThreadFrames {
 public:
  explicit ThreadFrames(std::vector<Frame>& frames) : frames_(frames) {}

  // False when the range crosses one that is open.
  bool Add(const ModuleRange& range) {
    CloseUntil(range.time.start_ns);
    const size_t ranges = RangesOpen();
    if (ranges > 0 &&
        range.time.end_ns > frames_[open_[ranges - 1].frame].end_ns)
      return false;
    const Path& path = range.marker->path;
    size_t known = Known(ranges, path);
    // A range within another one of the same module is the same call.
    if (known >= path.size()) return true;
    size_t kept = ranges;
    while (kept < open_.size() && known + 1 < path.size() &&
           NameOf(kept) == path[known]) {
      ++kept;
      ++known;
    }
    if (kept > ranges && open_[kept - 1].seen.contains(path[known])) {
      known -= kept - ranges;
      kept = ranges;
    }
    Close(kept);
    for (; known < path.size(); ++known)
      Open(range, path[known], known + 1 < path.size());
    return true;
  }

  void CloseAll() { Close(0); }

 private:
  struct Call {
    size_t frame;
    const Path* path = nullptr;  // of the range; null: no range stands for it
    absl::flat_hash_set<StringId> seen;  // parts, when no range stands for it
  };

  StringId NameOf(size_t depth) const {
    return frames_[open_[depth].frame].name;
  }

  // Number of open calls up to the innermost that a range stands for. Calls
  // without a range have nothing but such calls within.
  size_t RangesOpen() const {
    size_t n = open_.size();
    while (n > 0 && open_[n - 1].path == nullptr) --n;
    return n;
  }

  // Parts of a path that the open ranges say already: as a place in the whole
  // hierarchy, or in the path of one of them.
  size_t Known(size_t ranges, const Path& path) const {
    size_t known = 0;
    while (known < ranges && known < path.size() &&
           NameOf(known) == path[known])
      ++known;
    if (known < ranges && known < path.size()) known = 0;
    const size_t last = ranges - std::min(ranges, kMostAround);
    for (size_t i = ranges; i > last; --i) {
      if (open_[i - 1].path != nullptr)
        known = std::max(known, CommonPrefix(*open_[i - 1].path, path));
    }
    return known;
  }

  void Open(const ModuleRange& range, StringId name, bool part) {
    if (!open_.empty() && open_.back().path == nullptr)
      open_.back().seen.insert(name);
    Call call;
    call.frame = frames_.size();
    if (!part) call.path = &range.marker->path;
    open_.push_back(std::move(call));
    frames_.push_back({name, range.time.start_ns, range.time.end_ns,
                       range.slice, part ? SliceId() : range.last,
                       range.marker->backward});
  }

  // Calls without a range end with the last range within.
  void Close(size_t keep) {
    while (open_.size() > keep) {
      const int64_t end_ns = frames_[open_.back().frame].end_ns;
      open_.pop_back();
      if (!open_.empty() && open_.back().path == nullptr)
        frames_[open_.back().frame].end_ns = end_ns;
    }
  }

  void CloseUntil(int64_t time_ns) {
    for (size_t n = RangesOpen();
         n > 0 && frames_[open_[n - 1].frame].end_ns <= time_ns;
         n = RangesOpen())
      Close(n - 1);
  }

  std::vector<Frame>& frames_;
  std::vector<Call> open_;
};

// Processes whose profiler recorded module frames.
absl::flat_hash_set<StringId> ProcessesWithFrames(const Trace& trace) {
  absl::flat_hash_set<StringId> processes;
  std::vector<int8_t> is_module(trace.strings.size(), -1);
  const Slices& slices = trace.slices;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (slices.kind[i] != Kind::kPython) continue;
    int8_t& known = is_module[slices.name[i].value];
    if (known < 0)
      known = trace.strings[slices.name[i]].starts_with(kModulePrefix);
    if (known > 0) processes.insert(trace.TrackOf(SliceId(i)).pid);
  }
  return processes;
}

std::vector<ModuleRange> FindRanges(const Trace& trace,
                                    const ModuleMarkers& markers) {
  const auto with_frames = ProcessesWithFrames(trace);
  std::vector<ModuleRange> ranges;
  const Slices& slices = trace.slices;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (!MayNameModule(slices.kind[i])) continue;
    const auto marker = markers.find(slices.name[i]);
    const SliceId s(i);
    if (marker == markers.end() || with_frames.contains(trace.TrackOf(s).pid))
      continue;
    ranges.push_back({slices.track[i],
                      {trace.Start(s), trace.End(s)},
                      s,
                      s,
                      &marker->second});
  }
  return ranges;
}

// Uids beyond those of all events of the input, slices or not.
void Append(Trace& trace, const std::vector<std::pair<TrackId, Frame>>& added) {
  auto uid = static_cast<uint32_t>(trace.info.events);
  for (const uint32_t known : trace.slices.uid) uid = std::max(uid, known + 1);
  Slices& to = trace.slices;
  for (const auto& [track, frame] : added) {
    PythonArgs args;
    args.id = static_cast<int32_t>(frame.range.value);
    if (frame.last.valid())
      args.parent_id = static_cast<int32_t>(frame.last.value);
    args.module_id = frame.backward ? kBackwardFrame : kForwardFrame;
    to.push_back({.start_ns = frame.start_ns,
                  .dur_ns = frame.end_ns - frame.start_ns,
                  .name = frame.name,
                  .kind = Kind::kPython,
                  .category = to.category[frame.range.value],
                  .track = track,
                  .uid = uid++,
                  .offset = to.offset[frame.range.value],
                  .detail = static_cast<uint32_t>(trace.python.size())});
    trace.python.push_back(args);
  }
}

}  // namespace

bool IsRangeFrame(const Trace& trace, SliceId s) {
  const PythonArgs* const args = trace.Python(s);
  return args != nullptr && (args->module_id == kForwardFrame ||
                             args->module_id == kBackwardFrame);
}

SliceId RangeOfFrame(const Trace& trace, SliceId frame) {
  return SliceId(static_cast<uint32_t>(trace.Python(frame)->id));
}

SliceId LastRangeOfFrame(const Trace& trace, SliceId frame) {
  const int32_t last = trace.Python(frame)->parent_id;
  return last < 0 ? SliceId() : SliceId(static_cast<uint32_t>(last));
}

bool IsBackwardFrame(const Trace& trace, SliceId s) {
  const PythonArgs* const args = trace.Python(s);
  return args != nullptr && args->module_id == kBackwardFrame;
}

uint32_t RecordedSlices(const Trace& trace) {
  auto n = static_cast<uint32_t>(trace.slices.size() -
                                 trace.captured.parents.size());
  while (n > 0 && IsRangeFrame(trace, SliceId(n - 1))) --n;
  return n;
}

void AddModuleFrames(Trace& trace, const ModuleMarkers& markers) {
  if (markers.empty()) return;
  std::vector<ModuleRange> ranges = FindRanges(trace, markers);
  SortByNesting(trace, ranges);
  ranges = JoinParts(trace, ranges);
  std::vector<std::pair<TrackId, Frame>> added;
  for (size_t begin = 0; begin < ranges.size();) {
    const TrackId track = ranges[begin].track;
    std::vector<Frame> frames;
    ThreadFrames thread(frames);
    for (; begin < ranges.size() && ranges[begin].track == track; ++begin) {
      if (thread.Add(ranges[begin])) continue;
      trace.diagnostics.Add(
          Effect::kOddity, "crossing_module_range",
          "Ranges that name modules and overlap another one without nesting: "
          "no calls of modules.",
          trace.slices.offset[ranges[begin].slice.value]);
    }
    thread.CloseAll();
    for (const Frame& frame : frames) added.emplace_back(track, frame);
  }
  constexpr uint64_t kMostSlices = uint64_t{1} << 31;
  if (trace.slices.size() + added.size() < kMostSlices) Append(trace, added);
}

}  // namespace lamina::trace
