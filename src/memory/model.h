// SPDX-License-Identifier: Apache-2.0
//
// What a snapshot says of one device: its allocations over time and what was
// active, reserved ... at every moment. Moment m is the state after the first m
// of n events; moment 0 is before all of them.
//
//   requested  bytes that were asked for and not given back
//   allocated  their blocks (memory_allocated of PyTorch)
//   active     with the blocks that wait for other streams
//   reserved   with all that the allocator got from the driver and keeps
//
// The events hold requests, the device pays for blocks: how large a block was
// follows from replaying how the allocator splits (allocator.h), which is exact
// where the end of the recording can be compared.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/pod_vector.h"
#include "memory/allocator.h"
#include "memory/snapshot.h"

namespace lamina::memory {

using Moment = int32_t;
inline constexpr Moment kNever = std::numeric_limits<Moment>::max();
inline constexpr uint32_t kNoAllocation = 0xFFFFFFFF;

enum class EndKind : uint8_t {
  kAlive,    // allocated when the snapshot was taken
  kPending,  // waits for another stream then
  kFreed,
  kLost,     // its free was not recorded: another one took its address
  kUnknown,  // neither freed nor in the final state
};
std::string_view EndKindName(EndKind kind);

enum class Confidence : uint8_t { kLow, kMedium, kHigh, kFact };
std::string_view ConfidenceName(Confidence confidence);

struct Allocation {
  int64_t address = 0;
  int64_t bytes = 0;  // of the block
  int64_t requested = 0;
  // Event that made it; -1: from before the recording.
  Moment start = -1;
  // Last moment at which it is allocated, and active. kNever: to the end;
  // allocated_until is -1 for what only waited for a stream all the time.
  Moment allocated_until = kNever;
  Moment active_until = kNever;
  uint32_t stack = 0;
  uint32_t free_stack = 0;
  uint32_t tag = 0;
  EndKind end = EndKind::kUnknown;
  bool exact = false;  // the block is in the final state
  // By categories.h.
  uint8_t category = 0;
  uint8_t rule = 0;
  Confidence confidence = Confidence::kLow;
  bool autograd_thread = false;  // no frames because Python has none there

  bool before() const { return start < 0; }
  bool freed() const { return active_until != kNever; }
  bool ActiveAt(Moment m) const { return start < m && m <= active_until; }
  bool AllocatedAt(Moment m) const { return start < m && m <= allocated_until; }
};

struct Levels {
  int64_t requested = 0;
  int64_t allocated = 0;
  int64_t active = 0;
  int64_t reserved = 0;
};
enum class Measure : uint8_t { kRequested, kAllocated, kActive, kReserved };
inline constexpr size_t kMeasures = 4;
std::string_view MeasureName(Measure measure);
int64_t LevelOf(const Levels& levels, Measure measure);

struct Peak {
  int64_t bytes = 0;
  Moment moment = 0;  // the earliest
};

// A range that the allocator got from the driver.
struct Range {
  int64_t address = 0;
  int64_t size = 0;
  int64_t stream = 0;
  int64_t pool[2] = {0, 0};
  bool small = false;
  bool expandable = false;
  Moment born = -1;  // event; -1: before the recording

  int64_t end() const { return address + size; }
  bool SameClass(const Range& other) const {
    return stream == other.stream && small == other.small &&
           pool[0] == other.pool[0] && pool[1] == other.pool[1];
  }
};

struct Health {
  uint64_t lost_free = 0;
  uint64_t size_differs = 0;
  uint64_t final_size_differs = 0;
  uint64_t not_in_final_state = 0;
  uint64_t frees_without_alloc = 0;
  uint64_t replay_checked = 0;
  uint64_t replay_differs = 0;
  bool sizes_rounded_only = false;  // the replay does not fit this allocator
  uint64_t unsplit = 0;             // blocks larger than rounding explains
  int64_t uncertain_bytes = 0;
  uint64_t snapshot_checked = 0;
  uint64_t snapshot_differs = 0;
  int64_t snapshot_first = -1;  // event
  bool stated_differs = false;
  uint64_t segment_size_differs = 0;
  uint64_t inconsistent = 0;
  Moment inconsistent_first = -1;
  uint64_t no_time = 0;
  uint64_t actions[kActions] = {};
};

class Device {
 public:
  Device(const Snapshot& snapshot, int64_t ordinal, const Allocator& allocator);

  int64_t ordinal() const { return ordinal_; }
  const Snapshot& snapshot() const { return snapshot_; }
  const Events& events() const { return *events_; }
  Moment moments() const { return static_cast<Moment>(events_->count()); }
  const std::vector<const Segment*>& segments() const { return segments_; }
  const PodVector<Allocation>& allocations() const { return allocations_; }
  PodVector<Allocation>& allocations() { return allocations_; }
  const Allocator& allocator() const { return allocator_; }
  const Health& health() const { return health_; }

  // Allocation that event i makes or frees; kNoAllocation: none.
  uint32_t AllocationOf(size_t event) const { return of_event_[event]; }

  // Calls f(moment, levels) for every moment in order.
  template <class F>
  void Sweep(F f) const;

  Peak peak(Measure measure) const {
    return peaks_[static_cast<size_t>(measure)];
  }
  // Highest sum of requests in the way of the viewer of PyTorch.
  int64_t viewer_peak() const { return viewer_peak_; }
  Levels At(Moment moment) const;
  int64_t active(Moment moment) const {
    return active_[static_cast<size_t>(moment)];
  }
  // Highest active in moments [from, to].
  int64_t HighestActive(Moment from, Moment to) const;

  // Ranges of the driver at a moment, by address.
  std::vector<Range> RangesAt(Moment moment) const;
  // Time of event i, or the last known before it; kNoTime without any.
  int64_t TimeOf(Moment event) const;
  // Moment after the last event that is not later than this time.
  Moment MomentAt(int64_t time_us) const;

 private:
  void Walk();
  void JoinFinalState();
  void Replay();
  void MakeCurves();
  void MakeViewerPeak();
  void CheckStated();

  const Snapshot& snapshot_;
  int64_t ordinal_;
  const Allocator& allocator_;
  Events none_;
  const Events* events_;
  std::vector<const Segment*> segments_;
  PodVector<Allocation> allocations_;
  PodVector<uint32_t> of_event_;
  // Allocations that end because an alloc event takes their address, by event.
  std::vector<std::pair<Moment, uint32_t>> lost_;
  int64_t reserved_at_start_ = 0;
  Peak peaks_[kMeasures];
  int64_t viewer_peak_ = 0;
  PodVector<int64_t> active_;       // by moment
  PodVector<int64_t> active_high_;  // per block of moments
  Health health_;
};

template <class F>
void Device::Sweep(F f) const {
  Levels at;
  at.reserved = reserved_at_start_;
  for (const Allocation& a : allocations_) {
    if (!a.before()) continue;
    at.active += a.bytes;
    if (a.allocated_until >= 0) {
      at.requested += a.requested;
      at.allocated += a.bytes;
    }
  }
  f(Moment{0}, static_cast<const Levels&>(at));
  size_t next_lost = 0;
  const auto end_allocated = [&](const Allocation& a) {
    at.requested -= a.requested;
    at.allocated -= a.bytes;
  };
  const Moment n = moments();
  for (Moment i = 0; i < n; ++i) {
    switch (events_->action[static_cast<size_t>(i)]) {
      case Action::kSegmentAlloc:
      case Action::kSegmentMap:
        at.reserved += events_->size[static_cast<size_t>(i)];
        break;
      case Action::kSegmentFree:
      case Action::kSegmentUnmap:
        at.reserved -= events_->size[static_cast<size_t>(i)];
        break;
      default:
        break;
    }
    for (; next_lost < lost_.size() && lost_[next_lost].first == i;
         ++next_lost) {
      const Allocation& a = allocations_[lost_[next_lost].second];
      if (a.allocated_until == i) end_allocated(a);
      at.active -= a.bytes;
    }
    if (const uint32_t id = of_event_[static_cast<size_t>(i)];
        id != kNoAllocation) {
      const Allocation& a = allocations_[id];
      if (a.start == i) {
        at.requested += a.requested;
        at.allocated += a.bytes;
        at.active += a.bytes;
      } else {
        if (a.allocated_until == i) end_allocated(a);
        if (a.active_until == i) at.active -= a.bytes;
      }
    }
    f(i + 1, static_cast<const Levels&>(at));
  }
}

// What one device of a snapshot has; devices without segments and events are
// left out.
std::vector<int64_t> DevicesOf(const Snapshot& snapshot);

}  // namespace lamina::memory
