// SPDX-License-Identifier: Apache-2.0
#include "trace/module_ranges.h"

#include <algorithm>
#include <span>
#include <tuple>

namespace lamina::trace {
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

}  // namespace lamina::trace
