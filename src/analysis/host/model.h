// SPDX-License-Identifier: Apache-2.0
//
// How host and device of a recording work together: launch calls with the time
// at which they hand over their work, floors of launching and of the spacing
// between kernels, calls that wait for the device, waits between streams.
// Causes of idle time and the critical path both build on it.
//
// Terms. A launch call is the API call that device work is linked to, whatever
// its name. Its submit point is its start; a call that takes more than 4 times
// as long as usual (the median; of fewer than 4 calls at most 100 us) submits
// near its end, because it loads a module or waits for the driver. A staged
// copy feeds on the call: it begins while the call lasts and outlasts it
// (pageable memory). A queue is full when so many launches of a stream have not
// started that the next call has to wait for one of them.
// The launch floor is what a launch onto an idle stream takes (10th
// percentile), the gap floor what lies between two kernels that were both
// submitted (25th percentile).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/host/cover.h"
#include "analysis/host/os_records.h"
#include "base/status.h"

namespace lamina::analysis::host {

inline constexpr int64_t kDefaultLatencyNs = 8000;  // floors without samples
inline constexpr int64_t kMaxLatencyNs = 100000;
inline constexpr int64_t kDefaultGapNs = 1500;
inline constexpr int64_t kMaxGapNs = 5000;
inline constexpr size_t kMinSamples = 4;
// An inferred wait ends at most this long before the work that waited, or this
// little after its start: times are rounded.
inline constexpr int64_t kNearNs = 6000;
inline constexpr int64_t kRoundedNs = 100;
// Clocks of host and device differ by at most this.
inline constexpr int64_t kClockNs = 50000;
// An end that lies after a start by no more than this is before it.
inline constexpr int64_t kTouchNs = 1000;
// Less quiet time than this in a gap is time of the host between two records.
inline constexpr int64_t kQuietNs = 1000000;
// A delay below this needs no explanation.
inline constexpr int64_t kDelayNs = 2000;

inline constexpr uint32_t kNone = 0xFFFFFFFF;

struct Options {
  bool sync_records = true;  // use what the profiler recorded of waits
  bool infer = true;         // infer waits that it did not record
  bool any_host = true;      // find host_of(), which the graph of the path
                             // does not need
};

enum class WorkKind : uint8_t { kCompute, kComm, kCopy, kFill };

// What a runtime or driver call does by its name.
enum class CallKind : uint8_t {
  kOther,
  kDeviceSync,
  kFree,  // waits for the device when it has to
  kStreamSync,
  kEventSync,
  kQuery,       // of an event or a stream: asked again and again, it waits
  kRecord,      // of an event
  kStreamWait,  // a stream waits for an event
  kCopy,        // that may return before it is done
  kBlockingCopy,
};
CallKind CallKindOf(std::string_view name);

// Where a trace does not say what waited for what there are several readings
// (analysis/path/graph.h); what holds in some of them has a mask.
enum Reading : uint8_t { kBest = 1, kLow = 2, kHigh = 4, kDelay = 8 };
inline constexpr uint8_t kAllReadings = 15;

struct Call {
  int64_t submit_ns = 0;
  SliceId slice;
  uint32_t thread = kNone;
  uint32_t api = kNone;         // of apis(), by its first event
  uint32_t begin = 0, end = 0;  // of the events it launched, see Work()
  bool slow = false;
  bool staged = false;
  bool full = false;  // it waited for a place in the queue of its stream
};

// A stream whose queue was full.
struct FullQueue {
  uint32_t stream = 0;
  size_t depth = 0;      // a call has to wait for the start this many before
  int64_t usual_ns = 0;  // what a call takes that need not wait
  std::vector<SliceId> first;  // the first work of each launch, in their order
};

// Launch calls of one name to one device, of one or of many events each.
struct Api {
  uint32_t device = 0;  // of devices()
  StringId name;
  bool many = false;
  int64_t floor_ns = kDefaultLatencyNs;
  size_t samples = 0;
};

// Why a call waits for the device.
enum class WaitHow : uint8_t {
  kDevice,
  kFree,
  kStream,
  kEvent,
  kPoll,    // queries again and again: all of them are one wait
  kCopy,    // a copy that returns when it is done
  kStaged,  // a copy that the call feeds
};

// Work whose end a call waits for.
struct WaitSource {
  SliceId work;
  uint8_t readings = kAllReadings;
};

// A call that waits for the device, or would if it had to.
struct Wait {
  SliceId slice;
  SliceId last;  // of the queries of a poll; else the slice itself
  uint32_t thread = kNone;
  // The work whose end it waited for; invalid: it did not have to wait.
  SliceId target;
  WaitHow how = WaitHow::kDevice;
  bool inferred = false;  // for what is not recorded
  // Work whose end may bind when times change, see Sources().
  uint32_t begin = 0, end = 0;

  bool copies() const { return how == WaitHow::kCopy; }
};

// A call that makes a stream wait, and no record says for what.
struct WaitCall {
  SliceId work;  // the first that was launched after it, by its thread
  int64_t call_ns = 0;
  int64_t record_ns = 0;  // of the event, by the order of calls; kNoInt: none
};

struct Thread {
  trace::TrackId track;
  // Ops and API calls by (start, -end, uid).
  std::vector<SliceId> events;
  uint32_t process = 0;     // of all threads of a process the same number
  bool takes_part = false;  // has ops or launches
  // So many devices wait for its launches at a time that cutting the idle time
  // of each by what it does is a product: kMostWaiting on average.
  bool crowded = false;
  std::vector<uint32_t> waits;  // of waits(), by start
  Cover blocked;                // by calls with a target
  Cover copies;                 // by those of them that copy
  // Of threads that launch. `os.active` is without host_of().
  OsRecords os;
};

struct StreamFacts {
  uint32_t device = 0;
  int64_t gap_ns = kDefaultGapNs;        // between launches
  int64_t graph_gap_ns = kDefaultGapNs;  // within one launch
  bool gap_known = false;                // samples there were
  bool graph_gap_known = false;
};

struct DeviceFacts {
  StringId pid;
  int64_t id = trace::kNoInt;
  std::string name;               // process:device
  std::vector<uint32_t> streams;  // of trace.streams
  std::vector<SliceId> work;      // by (start, uid)
};

class HostModel {
 public:
  static constexpr std::string_view kFact = "host model";
  static Result<HostModel> Of(const Context& context) {
    return Build(context, {.sync_records = context.settings.sync_records,
                           .infer = context.settings.infer_waits});
  }

  static HostModel Build(const Context& context, const Options& options);

  const Context& context() const { return *context_; }
  const Trace& trace() const { return context_->trace; }
  const Options& options() const { return options_; }

  const std::vector<Thread>& threads() const { return threads_; }
  const std::vector<DeviceFacts>& devices() const { return devices_; }
  const std::vector<Api>& apis() const { return apis_; }
  const std::vector<Call>& calls() const { return calls_; }
  const std::vector<Wait>& waits() const { return waits_; }

  // --- device work; `s` is a device slice ---
  uint32_t stream(SliceId s) const { return stream_of_[Row(s)]; }
  uint32_t device(SliceId s) const { return streams_[stream(s)].device; }
  const StreamFacts& facts(uint32_t stream) const { return streams_[stream]; }
  size_t streams() const { return streams_.size(); }
  WorkKind kind(SliceId s) const;
  // Position in calls(); kNone if unlinked.
  uint32_t call(SliceId s) const { return call_of_[Row(s)]; }
  bool SameCall(SliceId a, SliceId b) const {
    return call(a) != kNone && call(a) == call(b);
  }
  // Earliest time at which a linked event could have started for all that the
  // host knows.
  int64_t Ready(SliceId s) const;
  // Launch floor of its call's API and its own device.
  int64_t Floor(SliceId s) const;
  std::span<const SliceId> Work(const Call& call) const {
    return {work_.data() + call.begin, work_.data() + call.end};
  }
  std::span<const WaitSource> Sources(const Wait& wait) const {
    return {sources_.data() + wait.begin, sources_.data() + wait.end};
  }
  // When it returned.
  int64_t EndOf(const Wait& wait) const { return trace().End(wait.last); }
  // Work of other streams whose end was recorded as what `s` waits for.
  std::span<const std::pair<SliceId, SliceId>> Dependencies(SliceId s) const;
  // By what waits.
  std::span<const WaitCall> wait_calls() const { return wait_calls_; }
  // Whether any row says that a stream waits for another.
  bool waits_recorded() const { return waits_recorded_; }
  const std::vector<FullQueue>& full_queues() const { return full_queues_; }
  // The latest end on another stream of the device in (after, start of s +
  // kRoundedNs], at most kNearNs before that start; invalid if none, or if not
  // to be inferred.
  // `near`: where an earlier answer for the device was found, see BoundNear.
  SliceId Infer(SliceId s, int64_t after, size_t* near) const;
  // Work of a stream in the order of launching; unlinked work is launched when
  // it starts.
  struct Order {
    std::vector<SliceId> work;
    std::vector<int64_t> launched;  // when
    std::vector<SliceId> last;      // of all up to here, what ends last
  };
  const Order& order(uint32_t stream) const { return orders_[stream]; }
  // What ends last of all work of a stream that was launched before a time;
  // invalid: there is none.
  SliceId LatestBefore(uint32_t stream, int64_t time) const;
  // The call of an API slice; kNone when it launched nothing.
  uint32_t CallOf(SliceId api) const;
  // Median duration of launch calls of this name; 0 if there are none.
  int64_t Typical(StringId name) const;
  // The same, of 40 calls on the 25th percentile, and without calls that wait
  // for a place in a queue.
  int64_t Usual(StringId name) const;

  // Finds what the operating system recorded and host_of(), this only within
  // idle times of a device from kQuietNs on, where Build was asked to leave
  // both out.
  void FindAnyHost();
  // Times in which anything of the host is recorded, on any thread of a
  // process. Only with Options::any_host, or where FindAnyHost() looked.
  const Cover& host_of(const Thread& thread) const {
    LAMINA_CHECK(options_.any_host);
    static const Cover kNothing;
    return thread.process < hosts_.size() ? hosts_[thread.process] : kNothing;
  }

  // Calls that are recorded to wait for the device, and how much earlier than
  // the end of that work they returned, where they did: the clocks of host and
  // device differ by that.
  struct Returns {
    int64_t calls = 0;
    std::vector<int64_t> early_ns;  // above 0
  };
  const Returns& returns() const { return returns_; }

  // What was counted while the model was made, by name.
  const std::map<std::string, int64_t>& counts() const { return counts_; }

 private:
  friend class Builder;
  uint32_t Row(SliceId s) const { return trace().slices.detail[s.value]; }
  uint32_t ApiOf(SliceId s, const Call& call) const;

  const Context* context_ = nullptr;
  Options options_;
  std::vector<Thread> threads_;
  std::vector<StreamFacts> streams_;
  std::vector<DeviceFacts> devices_;
  std::vector<Api> apis_;
  std::vector<Call> calls_;
  std::vector<SliceId> work_;
  std::vector<Wait> waits_;
  std::vector<WaitSource> sources_;
  std::vector<WaitCall> wait_calls_;  // by work
  std::vector<FullQueue> full_queues_;
  std::vector<Order> orders_;  // by stream
  bool waits_recorded_ = false;
  std::vector<uint32_t> stream_of_;  // by row of device arguments
  std::vector<uint32_t> call_of_;    // by row of device arguments
  // (what waits, what it waits for), by the first.
  std::vector<std::pair<SliceId, SliceId>> dependencies_;
  // Per device: ends by (end, uid), and for each the position of the last one
  // before it that is of another stream.
  struct Ends {
    std::vector<SliceId> work;
    std::vector<uint32_t> other;
  };
  std::vector<Ends> ends_;
  std::vector<uint32_t> call_of_api_;  // by row of API arguments
  std::vector<std::pair<StringId, int64_t>> typical_, usual_;  // by name
  std::vector<Cover> hosts_;                                   // by process
  Returns returns_;
  std::map<std::string, int64_t> counts_;
};

// Value at position floor(q * (n - 1)) of the sorted values; 0 for none.
int64_t Pick(std::span<const int64_t> values, double q);

}  // namespace lamina::analysis::host
