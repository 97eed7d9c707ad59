// SPDX-License-Identifier: Apache-2.0
//
// Idle time of devices and streams, cut to the nanosecond by what caused it.
//
// A gap lies between the running maximum of the ends so far and the start of
// the event that ends it. It is partitioned, not labelled; the causes in the
// order in which they claim time:
//
//   unlinked         the next event has no launch call
//   graph            spacing inside one graph launch
//   memcpy           the launching thread sat in a copy call that returns when
//                    the copy is done, or the work waited for a copy
//   sync             the launching thread sat in another blocking call
//   no_work          nothing is recorded on any thread (1 ms of it or more),
//                    nor by the operating system of the launching one
//   host_bound       the rest of the time before the launch
//   launch_overhead  launched, within the launch floor
//   dependency       until the work of another stream that it waits for ended
//   kernel_wait      within the usual spacing of kernels
//   submitted_wait   submitted, the stream free, and nothing recorded explains
//                    it: another rank, a callback, or records that are missing
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/host/model.h"
#include "base/pod_vector.h"
#include "rules/document.h"
#include "rules/pattern_table.h"

namespace lamina::analysis::host {

enum class Cause : uint8_t {
  kUnlinked,
  kGraph,
  kMemcpy,
  kSync,
  kNoWork,
  kHostBound,
  kLaunchOverhead,
  kDependency,
  kKernelWait,
  kSubmittedWait,
};
inline constexpr size_t kCauses = 10;
std::string_view CauseName(Cause cause);

using CauseTimes = std::array<int64_t, kCauses>;

struct Gap {
  uint32_t device = 0;  // of HostModel::devices()
  Interval interval;
  SliceId before;  // holds the running maximum of the ends
  SliceId next;    // ends the gap
};

// What the launching thread did in a part that is host_bound.
struct Activity {
  // Of a rule ("data_loader"), or: op, call, python, annotation, os_call,
  // slow_launch, preempted, blocked, off_processor, running, other_thread,
  // nothing.
  std::string what;
  std::string detail;  // of an op, frame ...; may be empty
};

// Of a thread that is crowded (model.h) a long gap has one part for each cause
// and activity, one behind the other: their lengths are right, where they stand
// is not. Until activities are found all of it is one part.
enum class Scattered : uint8_t {
  kNo,
  kAll,    // host_bound, memcpy and sync of the time before the launch
  kQuiet,  // also no_work
};

struct Part {
  uint32_t gap = 0;           // of Idle::gaps
  uint32_t activity = kNone;  // of Idle::activities; kNone: not host_bound
  int64_t start_ns = 0;
  int64_t length_ns = 0;
  Cause cause = Cause::kUnlinked;
  // host_bound behind a blocking call of the same thread that drained the
  // device: the price of the sync.
  bool after_sync = false;
  Scattered scattered = Scattered::kNo;
};
// More pieces of a gap than these are scattered.
inline constexpr size_t kMostPieces = 64;
// Whether the gaps that a thread ends may be.
bool MayScatter(const Thread& thread);

// Sums over one stream or device.
struct IdleSum {
  int64_t span_ns = 0;
  int64_t busy_ns = 0;
  size_t events = 0;
  size_t gaps = 0;
  CauseTimes times{};
  std::array<int64_t, kCauses> counts{};  // gaps with a part of the cause
  CauseTimes largest{};                   // longest part
  std::array<SliceId, kCauses> largest_next{};
  int64_t idle_ns() const { return span_ns - busy_ns; }
};

// Idle time of the devices, each over the union of its streams.
struct Idle {
  static constexpr std::string_view kFact = "idle causes";
  // By data/host, on the host model of the context.
  static Result<Idle> Of(const Context& context);

  PodVector<Gap> gaps;    // per device by start
  PodVector<Part> parts;  // per gap by start; they tile the gap
  std::vector<Activity> activities;
  std::vector<IdleSum> devices;
  // Position in `parts` of the first one of a gap; gaps.size() + 1 entries.
  std::vector<uint32_t> first_part;
};

// What names of frames, ops and ranges say of the host: data/host.
Result<std::shared_ptr<const rules::PatternTable>> LoadRules(
    const rules::DataSet& data);

// Whether the causes of one gap have time that is host_bound or
// launch_overhead.
bool HostIsLate(const HostModel& model, const Interval& gap, SliceId next,
                SliceId before);

// Sums over one stream.
IdleSum StreamIdle(const HostModel& model, uint32_t stream);

Idle FindIdle(const HostModel& model, const rules::PatternTable& rules);

// How much of some windows the devices were busy or idle, and why: what tells
// whether a verdict on a window is to be believed. Nothing but sums is kept, so
// that it costs no memory where many gaps are in few windows.
class IdleEvidence {
 public:
  // The model has host_of(), or has it in long gaps.
  static IdleEvidence Of(const HostModel& model,
                         std::span<const Interval> windows);

  // Sums over the devices.
  struct Sums {
    int64_t busy_ns = 0;
    int64_t host_bound_ns = 0, launch_overhead_ns = 0, submitted_wait_ns = 0;
    // Something launched waited to start, on any stream.
    int64_t waiting_ns = 0;
    Sums& operator+=(const Sums& more);
  };
  const Sums& window(size_t i) const { return sums_[i]; }
  size_t devices() const { return devices_; }

 private:
  IdleEvidence(const HostModel& model, std::span<const Interval> windows);
  void AddQueues(const HostModel& model);
  void AddDevices(const HostModel& model);
  void Finish(std::span<const Interval> windows);
  // The first piece that ends after a time, looked for from `near`.
  size_t PieceAt(int64_t time, size_t near) const;
  // Adds an interval to pieces[i - first]; of each part of it `length`.
  template <class Length>
  void AddBy(const Interval& interval, int64_t Sums::*to, size_t& near,
             size_t first, std::vector<Sums>& pieces,
             const Length& length) const;
  void Add(const Interval& interval, int64_t Sums::*to, size_t& near,
           size_t first, std::vector<Sums>& pieces) const;

  size_t devices_ = 0;
  std::vector<int64_t> bounds_;  // all begins and ends of windows, sorted
  std::vector<Sums> pieces_;     // from each bound to the next
  std::vector<Sums> sums_;       // by window
};

}  // namespace lamina::analysis::host
