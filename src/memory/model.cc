// SPDX-License-Identifier: Apache-2.0
#include "memory/model.h"

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>

namespace lamina::memory {
namespace {

constexpr size_t kBlockOfMoments = 64;

constexpr std::array<std::string_view, 5> kEnds = {"alive", "pending", "freed",
                                                   "lost", "unknown"};
constexpr std::array<std::string_view, 4> kConfidences = {"low", "medium",
                                                          "high", "fact"};
constexpr std::array<std::string_view, kMeasures> kMeasureNames = {
    "requested", "allocated", "active", "reserved"};

bool IsSegmentEvent(Action action) {
  return action == Action::kSegmentAlloc || action == Action::kSegmentFree ||
         action == Action::kSegmentMap || action == Action::kSegmentUnmap;
}

// Ranges by address that grow and shrink.
class RangeMap {
 public:
  void Add(const Range& range) {
    Range added = range;
    if (added.expandable) {
      // Neighbours of an expandable segment are one run.
      auto next = ranges_.find(added.end());
      if (next != ranges_.end() && next->second.expandable &&
          next->second.stream == added.stream) {
        Range joined = next->second;
        joined.address = added.address;
        joined.size += added.size;
        ranges_.erase(next);
        added = joined;
      }
      auto last = ranges_.lower_bound(added.address);
      if (last != ranges_.begin()) {
        --last;
        if (last->second.expandable && last->second.end() == added.address &&
            last->second.stream == added.stream) {
          last->second.size += added.size;
          return;
        }
      }
    }
    ranges_.insert_or_assign(added.address, added);
  }

  // Takes [address, address + size) out of the range that holds it.
  bool Cut(int64_t address, int64_t size) {
    auto it = ranges_.upper_bound(address);
    if (it == ranges_.begin()) return false;
    --it;
    const Range old = it->second;
    if (address + size > old.end()) return false;
    ranges_.erase(it);
    if (address > old.address) {
      Range left = old;
      left.size = address - old.address;
      ranges_.emplace(left.address, left);
    }
    if (address + size < old.end()) {
      Range right = old;
      right.address = address + size;
      right.size = old.end() - right.address;
      ranges_.emplace(right.address, right);
    }
    return true;
  }

  const Range* Find(int64_t address) const {
    auto it = ranges_.upper_bound(address);
    if (it == ranges_.begin()) return nullptr;
    --it;
    return address < it->second.end() ? &it->second : nullptr;
  }

  std::vector<Range> All() const {
    std::vector<Range> out;
    out.reserve(ranges_.size());
    for (const auto& [address, range] : ranges_) out.push_back(range);
    return out;
  }

 private:
  absl::btree_map<int64_t, Range> ranges_;
};

Range RangeOfEvent(const Device& device, size_t event) {
  const Events& events = device.events();
  const Tag& tag = device.snapshot().tags[events.tag[event]];
  Range range;
  range.address = events.address[event];
  range.size = events.size[event];
  range.stream = tag.stream;
  range.pool[0] = tag.pool[0];
  range.pool[1] = tag.pool[1];
  range.small = range.size <= device.allocator().rules().small_segment;
  const Action action = events.action[event];
  range.expandable =
      action == Action::kSegmentMap || action == Action::kSegmentUnmap;
  return range;
}

// The ranges at a moment, from those of the final state backwards.
RangeMap UndoneTo(const Device& device, Moment moment) {
  RangeMap map;
  for (const Segment* segment : device.segments()) {
    Range range;
    range.address = segment->address;
    range.size = segment->size;
    range.stream = segment->stream;
    range.pool[0] = segment->pool[0];
    range.pool[1] = segment->pool[1];
    range.small = segment->small;
    range.expandable = segment->expandable;
    map.Add(range);
  }
  const Events& events = device.events();
  for (size_t i = events.count(); i-- > static_cast<size_t>(moment);) {
    switch (events.action[i]) {
      case Action::kSegmentAlloc:
      case Action::kSegmentMap:
        map.Cut(events.address[i], events.size[i]);
        break;
      case Action::kSegmentFree:
      case Action::kSegmentUnmap:
        map.Add(RangeOfEvent(device, i));
        break;
      default:
        break;
    }
  }
  return map;
}

}  // namespace

std::string_view EndKindName(EndKind kind) {
  return kEnds[static_cast<size_t>(kind)];
}

std::string_view ConfidenceName(Confidence confidence) {
  return kConfidences[static_cast<size_t>(confidence)];
}

std::string_view MeasureName(Measure measure) {
  return kMeasureNames[static_cast<size_t>(measure)];
}

int64_t LevelOf(const Levels& levels, Measure measure) {
  switch (measure) {
    case Measure::kRequested:
      return levels.requested;
    case Measure::kAllocated:
      return levels.allocated;
    case Measure::kActive:
      return levels.active;
    case Measure::kReserved:
      return levels.reserved;
  }
  return 0;
}

std::vector<int64_t> DevicesOf(const Snapshot& snapshot) {
  std::vector<int64_t> out;
  for (const Segment& segment : snapshot.segments)
    out.push_back(segment.device);
  for (size_t i = 0; i < snapshot.devices.size(); ++i) {
    if (snapshot.devices[i].count() > 0) out.push_back(static_cast<int64_t>(i));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Device::Device(const Snapshot& snapshot, int64_t ordinal,
               const Allocator& allocator)
    : snapshot_(snapshot), ordinal_(ordinal), allocator_(allocator) {
  events_ = static_cast<size_t>(ordinal) < snapshot.devices.size()
                ? &snapshot.devices[static_cast<size_t>(ordinal)]
                : &none_;
  for (const Segment& segment : snapshot.segments) {
    if (segment.device == ordinal) segments_.push_back(&segment);
  }
  std::sort(segments_.begin(), segments_.end(),
            [](const Segment* a, const Segment* b) {
              return a->address < b->address;
            });
  Walk();
  Replay();
  MakeCurves();
  MakeViewerPeak();
  CheckStated();
}

void Device::Walk() {
  const Events& e = *events_;
  const size_t n = e.count();
  absl::flat_hash_map<int64_t, uint32_t> open;
  of_event_.resize(n, kNoAllocation);
  size_t allocs = 0;
  bool pairs = false;
  for (size_t i = 0; i < n; ++i) {
    allocs += e.action[i] == Action::kAlloc;
    pairs |= e.action[i] == Action::kFreeRequested;
    ++health_.actions[static_cast<size_t>(e.action[i])];
    health_.no_time += e.time_us[i] == kNoTime;
  }
  allocations_.reserve(allocs);
  const auto make = [&](int64_t address, int64_t requested) {
    Allocation& a = *allocations_.AppendUninitialized(1) = Allocation();
    a.address = address;
    a.requested = requested;
    a.bytes = allocator_.Rounded(requested);
    return static_cast<uint32_t>(allocations_.size() - 1);
  };
  for (size_t i = 0; i < n; ++i) {
    const auto event = static_cast<Moment>(i);
    const Action action = e.action[i];
    if (action == Action::kAlloc) {
      const auto [it, added] = open.try_emplace(e.address[i], 0);
      if (!added) {
        ++health_.lost_free;
        Allocation& old = allocations_[it->second];
        old.active_until = event;
        if (old.allocated_until == kNever) old.allocated_until = event;
        old.end = EndKind::kLost;
        lost_.emplace_back(event, it->second);
      }
      const uint32_t id = make(e.address[i], e.size[i]);
      Allocation& a = allocations_[id];
      a.start = event;
      a.stack = e.stack[i];
      a.tag = e.tag[i];
      it->second = id;
      of_event_[i] = id;
    } else if (action == Action::kFreeRequested ||
               action == Action::kFreeCompleted) {
      auto it = open.find(e.address[i]);
      if (it == open.end()) {
        ++health_.frees_without_alloc;
        const uint32_t id = make(e.address[i], e.size[i]);
        allocations_[id].tag = e.tag[i];
        if (action == Action::kFreeCompleted && pairs) {
          allocations_[id].allocated_until = -1;  // was already waiting
          allocations_[id].free_stack = e.stack[i];
        }
        it = open.emplace(e.address[i], id).first;
      } else if (allocations_[it->second].requested != e.size[i]) {
        ++health_.size_differs;
      }
      Allocation& a = allocations_[it->second];
      of_event_[i] = it->second;
      if (a.allocated_until == kNever) {
        a.allocated_until = event;
        a.free_stack = e.stack[i];
      }
      if (action == Action::kFreeCompleted) {
        a.active_until = event;
        a.end = EndKind::kFreed;
        open.erase(it);
      }
    }
  }
  // The final state.
  absl::flat_hash_map<int64_t, bool> final_state;
  for (const Segment* segment : segments_) {
    for (const Block& block : segment->blocks) {
      if (block.state == BlockState::kInactive) continue;
      const int64_t requested =
          block.requested < 0 ? block.size : block.requested;
      final_state.emplace(block.address, true);
      const auto it = open.find(block.address);
      uint32_t id = 0;
      if (it == open.end()) {
        id = make(block.address, requested);
        allocations_[id].stack = block.stack;
        // Waits for a stream since before the recording.
        if (block.state == BlockState::kPendingFree)
          allocations_[id].allocated_until = -1;
      } else {
        id = it->second;
        if (allocations_[id].requested != requested)
          ++health_.final_size_differs;
      }
      Allocation& a = allocations_[id];
      if (a.stack == 0) a.stack = block.stack;
      a.requested = requested;
      a.bytes = block.size;
      a.exact = true;
      a.end = block.state == BlockState::kAllocated ? EndKind::kAlive
                                                    : EndKind::kPending;
    }
  }
  for (const auto& [address, id] : open) {
    if (final_state.contains(address)) continue;
    ++health_.not_in_final_state;
    allocations_[id].end = EndKind::kUnknown;
  }
}

void Device::Replay() {
  RangeMap ranges = UndoneTo(*this, 0);
  const int64_t small = allocator_.rules().small_limit;
  absl::btree_map<int64_t, uint32_t> starts;  // of active blocks
  for (uint32_t id = 0; id < allocations_.size(); ++id) {
    if (allocations_[id].before())
      starts.insert_or_assign(allocations_[id].address, id);
  }
  for (const auto& [address, id] : starts) {
    const Allocation& a = allocations_[id];
    const int64_t rounded = allocator_.Rounded(a.requested);
    if (a.exact || rounded <= small) continue;
    const Range* const range = ranges.Find(address);
    if (range == nullptr || range->expandable) continue;
    int64_t room_end = range->end();
    const auto next = starts.upper_bound(address);
    if (next != starts.end()) room_end = std::min(room_end, next->first);
    const int64_t rest = room_end - address - rounded;
    if (rest > 0)
      health_.uncertain_bytes +=
          std::min(rest, allocator_.rules().unsplit_rest);
  }
  const Events& e = *events_;
  size_t next_lost = 0;
  for (size_t i = 0; i < e.count(); ++i) {
    const auto event = static_cast<Moment>(i);
    if (IsSegmentEvent(e.action[i])) {
      if (e.action[i] == Action::kSegmentAlloc ||
          e.action[i] == Action::kSegmentMap)
        ranges.Add(RangeOfEvent(*this, i));
      else
        ranges.Cut(e.address[i], e.size[i]);
      continue;
    }
    const uint32_t id = of_event_[i];
    for (; next_lost < lost_.size() && lost_[next_lost].first == event;
         ++next_lost)
      starts.erase(allocations_[lost_[next_lost].second].address);
    if (id == kNoAllocation) continue;
    Allocation& a = allocations_[id];
    if (a.start != event) {
      if (a.active_until == event) starts.erase(a.address);
      continue;
    }
    const auto placed = starts.insert_or_assign(a.address, id).first;
    const int64_t rounded = allocator_.Rounded(a.requested);
    int64_t bytes = rounded;
    const Range* const range = ranges.Find(a.address);
    if (range != nullptr && !range->expandable) {
      int64_t room_end = range->end();
      auto next = placed;
      if (++next != starts.end()) room_end = std::min(room_end, next->first);
      bytes = allocator_.BlockIn(rounded, room_end - a.address);
    }
    if (a.exact) {
      ++health_.replay_checked;
      health_.replay_differs += bytes != a.bytes;
    } else {
      a.bytes = bytes;
    }
    health_.unsplit += bytes != rounded;
  }
  if (health_.replay_differs * 100 <= health_.replay_checked) return;
  // This allocator splits in another way.
  health_.sizes_rounded_only = true;
  for (Allocation& a : allocations_) {
    if (!a.exact) a.bytes = allocator_.Rounded(a.requested);
  }
}

void Device::MakeCurves() {
  const Events& e = *events_;
  for (const Segment* segment : segments_) reserved_at_start_ += segment->size;
  for (size_t i = 0; i < e.count(); ++i) {
    if (e.action[i] == Action::kSegmentAlloc ||
        e.action[i] == Action::kSegmentMap)
      reserved_at_start_ -= e.size[i];
    if (e.action[i] == Action::kSegmentFree ||
        e.action[i] == Action::kSegmentUnmap)
      reserved_at_start_ += e.size[i];
  }
  active_.reserve(e.count() + 1);
  Sweep([&](Moment m, const Levels& at) {
    for (size_t k = 0; k < kMeasures; ++k) {
      const int64_t level = LevelOf(at, static_cast<Measure>(k));
      if (m == 0 || level > peaks_[k].bytes) peaks_[k] = {level, m};
    }
    if (m % kBlockOfMoments == 0)
      active_high_.push_back(at.active);
    else
      active_high_.back() = std::max(active_high_.back(), at.active);
    active_.push_back(at.active);
    if (at.reserved < 0 || at.active > at.reserved) {
      if (health_.inconsistent++ == 0) health_.inconsistent_first = m;
    }
    if (m == 0) return;
    const auto i = static_cast<size_t>(m) - 1;
    if (e.action[i] != Action::kSnapshot) return;
    ++health_.snapshot_checked;
    if (e.size[i] != at.active && health_.snapshot_differs++ == 0)
      health_.snapshot_first = static_cast<int64_t>(i);
  });
}

void Device::MakeViewerPeak() {
  int64_t at = 0;
  for (const Allocation& a : allocations_) {
    if (a.before() && (a.end == EndKind::kFreed || a.end == EndKind::kAlive))
      at += a.requested;
  }
  const int64_t start = at;
  bool any = false;
  for (size_t i = 0; i < events_->count(); ++i) {
    const uint32_t id = of_event_[i];
    if (id == kNoAllocation) continue;
    const Allocation& a = allocations_[id];
    const auto event = static_cast<Moment>(i);
    if (a.start == event) {
      at += events_->size[i];
    } else if (a.active_until == event && a.end == EndKind::kFreed) {
      at -= a.before() ? a.requested
                       : events_->size[static_cast<size_t>(a.start)];
    } else {
      continue;
    }
    any = true;
    viewer_peak_ = std::max(viewer_peak_, at);
  }
  if (!any) viewer_peak_ = start;
}

void Device::CheckStated() {
  if (snapshot_.layout != "history") {
    for (const Segment* segment : segments_) {
      int64_t allocated = 0, active = 0, requested = 0, size = 0;
      for (const Block& block : segment->blocks) {
        size += block.size;
        if (block.state == BlockState::kInactive) continue;
        active += block.size;
        requested += block.requested < 0 ? block.size : block.requested;
        if (block.state == BlockState::kAllocated) allocated += block.size;
      }
      const auto differs = [](int64_t stated, int64_t found) {
        return stated >= 0 && stated != found;
      };
      health_.stated_differs |= differs(segment->stated_allocated, allocated) ||
                                differs(segment->stated_active, active) ||
                                differs(segment->stated_requested, requested) ||
                                size != segment->size;
    }
  }
  const AllocatorRules& rules = allocator_.rules();
  for (const Segment* segment : segments_) {
    if (segment->expandable) continue;
    const bool fits = segment->small
                          ? segment->size == rules.small_segment
                          : segment->size == rules.large_segment ||
                                (segment->size >= rules.large_request &&
                                 segment->size % rules.segment_multiple == 0);
    health_.segment_size_differs += !fits;
  }
}

Levels Device::At(Moment moment) const {
  Levels out;
  Sweep([&](Moment m, const Levels& at) {
    if (m == moment) out = at;
  });
  return out;
}

int64_t Device::HighestActive(Moment from, Moment to) const {
  int64_t best = std::numeric_limits<int64_t>::min();
  for (auto m = static_cast<size_t>(from); m <= static_cast<size_t>(to);) {
    if (m % kBlockOfMoments == 0 &&
        m + kBlockOfMoments <= static_cast<size_t>(to) + 1) {
      best = std::max(best, active_high_[m / kBlockOfMoments]);
      m += kBlockOfMoments;
    } else {
      best = std::max(best, active_[m++]);
    }
  }
  return best;
}

std::vector<Range> Device::RangesAt(Moment moment) const {
  return UndoneTo(*this, moment).All();
}

int64_t Device::TimeOf(Moment event) const {
  for (Moment i = std::min(event, moments() - 1); i >= 0; --i) {
    if (events_->time_us[static_cast<size_t>(i)] != kNoTime)
      return events_->time_us[static_cast<size_t>(i)];
  }
  return kNoTime;
}

Moment Device::MomentAt(int64_t time_us) const {
  for (Moment i = moments(); i > 0; --i) {
    const int64_t at = events_->time_us[static_cast<size_t>(i) - 1];
    if (at != kNoTime && at <= time_us) return i;
  }
  return 0;
}

}  // namespace lamina::memory
