// SPDX-License-Identifier: Apache-2.0
//
// One file, because each step needs what the one before it found: threads and
// calls, floors, submit points, calls that wait, waits between streams. Every
// step is linear in events or sorts them once.
#include "analysis/host/model.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <functional>
#include <mutex>

#include "analysis/host/work_stretch.h"
#include "base/parallel.h"
#include "base/run_sort.h"
#include "base/text.h"
#include "trace/sync_record.h"

namespace lamina::analysis::host {

using trace::Kind;
using trace::kNoInt;
using trace::kNoRow;

namespace {

bool IsHost(Kind kind) { return kind == Kind::kOp || trace::IsApiCall(kind); }

// A call is slow beyond this many times the usual time.
constexpr int64_t kSlow = 4;
// A call that launches a copy and takes longer than this waits for it.
constexpr int64_t kWaitsForCopyNs = 20000;
// A frame that waits for work returns so soon after it, or within a tenth of
// its own time.
constexpr int64_t kReturnsWithinNs = 200'000;
// A call that frees memory and takes longer than this waits.
constexpr int64_t kWaitsToFreeNs = 50000;
// So many queries of one thread, with no other call between, are a wait.
constexpr size_t kPoll = 3;
// Launches of a stream that have not started when its queue may be full; what
// a call takes beyond the usual then is a wait.
constexpr size_t kNearlyFull = 900;
// How many events back an event may lie that a call waits for.
constexpr ptrdiff_t kMostRecords = 200;

}  // namespace

int64_t Pick(std::span<const int64_t> values, double q) {
  if (values.empty()) return 0;
  auto at = static_cast<size_t>(q * static_cast<double>(values.size() - 1));
  // Many values are counted by their leading bits, and those of the bucket
  // that holds the answer looked at again: three walks in place of the many
  // that are mispredicted when all of them are partitioned.
  constexpr size_t kFew = 2048;
  constexpr int kBits = 11;
  std::vector<int64_t> kept;
  while (values.size() > kFew) {
    const auto [least, most] =
        std::minmax_element(values.begin(), values.end());
    const auto low = static_cast<uint64_t>(*least);
    const uint64_t range = static_cast<uint64_t>(*most) - low;
    const int shift =
        std::max(0, static_cast<int>(std::bit_width(range)) - kBits);
    const auto bucket_of = [&](int64_t value) {
      return static_cast<size_t>((static_cast<uint64_t>(value) - low) >> shift);
    };
    std::array<size_t, size_t{1} << kBits> counts{};
    for (const int64_t value : values) ++counts[bucket_of(value)];
    size_t bucket = 0;
    while (at >= counts[bucket]) at -= counts[bucket++];
    if (shift == 0) return static_cast<int64_t>(low + bucket);
    std::vector<int64_t> inside;
    inside.reserve(counts[bucket]);
    for (const int64_t value : values) {
      if (bucket_of(value) == bucket) inside.push_back(value);
    }
    kept = std::move(inside);
    values = kept;
  }
  if (kept.empty()) kept.assign(values.begin(), values.end());
  const auto found = kept.begin() + static_cast<ptrdiff_t>(at);
  std::nth_element(kept.begin(), found, kept.end());
  return *found;
}

CallKind CallKindOf(std::string_view name) {
  const bool cuda = name.starts_with("cuda") || name.starts_with("hip");
  std::string_view rest = name;
  if (name.starts_with("cuda")) {
    rest.remove_prefix(4);
  } else if (name.starts_with("hip")) {
    rest.remove_prefix(3);
  } else if (name.starts_with("cu")) {
    rest.remove_prefix(2);
  } else {
    return CallKind::kOther;
  }
  if (cuda && rest.starts_with("DeviceSynchronize"))
    return CallKind::kDeviceSync;
  if (!cuda && rest.starts_with("CtxSynchronize")) return CallKind::kDeviceSync;
  if (cuda && rest == "Free") return CallKind::kFree;
  if (rest.starts_with("StreamSynchronize")) return CallKind::kStreamSync;
  if (rest.starts_with("EventSynchronize")) return CallKind::kEventSync;
  if (rest.starts_with("EventQuery") || rest.starts_with("StreamQuery"))
    return CallKind::kQuery;
  if (rest.starts_with("EventRecord")) return CallKind::kRecord;
  if (rest.starts_with("StreamWaitEvent")) return CallKind::kStreamWait;
  if (!cuda && rest.starts_with("MemFree") &&
      rest.find("Async") == std::string_view::npos)
    return CallKind::kFree;
  if (rest.starts_with("Memcpy")) {
    rest.remove_prefix(6);
    static constexpr std::string_view kBlocking[] = {
        "",     "2D",   "3D",   "FromSymbol", "ToSymbol", "WithStream",
        "DtoH", "HtoD", "DtoD", "DtoH_v2",    "HtoD_v2",  "DtoD_v2"};
    return std::find(std::begin(kBlocking), std::end(kBlocking), rest) !=
                   std::end(kBlocking)
               ? CallKind::kBlockingCopy
               : CallKind::kCopy;
  }
  return CallKind::kOther;
}

class Builder {
 public:
  Builder(const Context& context, const Options& options, HostModel& model)
      : context_(context), trace_(context.trace), m_(model) {
    m_.context_ = &context;
    m_.options_ = options;
    slices_ = trace_.captured.empty()
                  ? static_cast<uint32_t>(trace_.slices.size())
                  : trace_.captured.first;
  }

  void Run() {
    FindDeviceWaits();
    // What stands in one call is independent of each other.
    const int threads = context_.settings.threads;
    ParallelFor(threads, 2, [&](size_t i) {
      if (i == 0) Threads();
      if (i == 1) Devices();
    });
    ParallelFor(threads, 4, [&](size_t i) {
      if (i == 0) Calls();
      if (i == 1 && m_.options_.any_host) AnyHost(nullptr);
      if (i == 2) Ends();
      if (i == 3) ReadSyncs();
    });
    ParallelFor(threads, 2, [&](size_t i) {
      if (i == 0) UsualTimes();
      if (i == 1) {
        LaunchOrder();
        FindCalls();
      }
    });
    FullQueues();
    ParallelFor(threads, 2, [&](size_t i) {
      if (i == 0) {
        Floors();
        SubmitPoints();
        Gaps();
      }
      if (i == 1) {
        Waits();
        Dependencies();
      }
    });
    Covers();
    Crowds();
    if (m_.options_.any_host) OperatingSystem();
  }

  void RunAnyHost() {
    Processes();
    std::vector<Interval> quiet;
    for (const DeviceFacts& device : m_.devices_) {
      const auto stretches =
          CutWork(trace_, device.work, context_.settings.threads);
      for (const WorkStretch& stretch : stretches) {
        ForGaps(trace_, device.work, stretch,
                [&](const Interval& gap, SliceId, SliceId) {
                  if (gap.length_ns() >= kQuietNs) quiet.push_back(gap);
                });
      }
    }
    if (quiet.empty()) return;
    const Cover within(std::move(quiet));
    AnyHost(&within);
    OperatingSystem();
  }

 private:
  void Count(const char* what, int64_t by = 1) {
    if (by == 0) return;
    const std::lock_guard lock(counting_);
    m_.counts_[what] += by;
  }
  int64_t Start(SliceId s) const { return trace_.Start(s); }
  int64_t End(SliceId s) const { return trace_.End(s); }

  void Devices() {
    m_.stream_of_.assign(trace_.device.size(), 0);
    std::map<std::pair<std::string_view, int64_t>, uint32_t> known;
    for (uint32_t i = 0; i < trace_.streams.size(); ++i) {
      const trace::Stream& stream = trace_.streams[i];
      const auto [it, is_new] =
          known.try_emplace({trace_.Text(stream.pid), stream.device},
                            static_cast<uint32_t>(m_.devices_.size()));
      if (is_new) {
        DeviceFacts facts;
        facts.pid = stream.pid;
        facts.id = stream.device;
        facts.name = trace_.DeviceName(stream);
        m_.devices_.push_back(std::move(facts));
      }
      m_.devices_[it->second].streams.push_back(i);
      StreamFacts facts;
      facts.device = it->second;
      m_.streams_.push_back(facts);
      for (const SliceId s : stream.slices) m_.stream_of_[m_.Row(s)] = i;
    }
    for (const SliceId s : trace_.device_slices())
      m_.devices_[m_.device(s)].work.push_back(s);
  }

  // Names of frames and ranges that return when work of the device has ended
  // (data/waits). Where the calls of a runtime are not recorded, as with XLA,
  // they are all that is known of the wait.
  void FindDeviceWaits() {
    const rules::PatternTable& rules = context_.catalog.outside_table();
    std::vector<bool> known(trace_.strings.size());
    for (uint32_t i = 0; i < slices_; ++i) {
      const Kind kind = trace_.slices.kind[i];
      if (kind != Kind::kPython && kind != Kind::kAnnotation) continue;
      const StringId name = trace_.slices.name[i];
      if (known[name.value]) continue;
      known[name.value] = true;
      const int rule = rules.Find(trace_.Text(name));
      if (rule == rules::PatternTable::kNone ||
          rules.rule(rule).value != "device")
        continue;
      device_wait_.resize(known.size());
      device_wait_[name.value] = true;
    }
  }

  bool IsDeviceWait(SliceId s) const {
    return !device_wait_.empty() && !IsHost(trace_.KindOf(s)) &&
           device_wait_[trace_.slices.name[s.value].value] &&
           (trace_.KindOf(s) == Kind::kPython ||
            trace_.KindOf(s) == Kind::kAnnotation);
  }

  // Host events of one track in a range of slices.
  struct OnTrack {
    uint32_t track = 0;
    bool ops = false;
    size_t events = 0;
    size_t at = 0;  // of the thread's events: where they begin
  };

  // Calls f(the entry of its track in `found`, slice) for the host events of a
  // range of slices; tracks are found in the order of their first events.
  template <class F>
  void ForHostEvents(size_t begin, size_t end, std::vector<OnTrack>& found,
                     const F& f) const {
    absl::flat_hash_map<uint32_t, size_t> places;
    for (size_t i = 0; i < found.size(); ++i) places[found[i].track] = i;
    uint32_t last = kNone;  // events of a thread follow each other
    size_t at = 0;
    for (size_t i = begin; i < end; ++i) {
      if (!IsHost(trace_.slices.kind[i]) &&
          !IsDeviceWait(SliceId(static_cast<uint32_t>(i))))
        continue;
      const uint32_t track = trace_.slices.track[i].value;
      if (track != last) {
        last = track;
        const auto [it, is_new] = places.try_emplace(track, found.size());
        at = it->second;
        if (is_new) found.push_back({track, false, 0, 0});
      }
      f(found[at], SliceId(static_cast<uint32_t>(i)));
    }
  }

  void Threads() {
    const int threads = context_.settings.threads;
    constexpr size_t kGrain = size_t{1} << 17;
    std::vector<std::vector<OnTrack>> ranges((slices_ + kGrain - 1) / kGrain);
    ParallelRanges(
        threads, slices_, kGrain, [&](size_t begin, size_t end, size_t range) {
          ForHostEvents(
              begin, end, ranges[range], [&](OnTrack& own, SliceId s) {
                ++own.events;
                own.ops =
                    own.ops || trace_.KindOf(s) == Kind::kOp || IsDeviceWait(s);
              });
        });
    std::vector<uint32_t> thread_of(trace_.tracks.size(), kNone);
    thread_of_ = std::vector<uint32_t>(trace_.tracks.size(), kNone);
    std::vector<size_t> counts;
    for (std::vector<OnTrack>& range : ranges) {
      for (OnTrack& own : range) {
        uint32_t& known = thread_of[own.track];
        if (known == kNone) {
          known = static_cast<uint32_t>(m_.threads_.size());
          m_.threads_.emplace_back().track = trace::TrackId(own.track);
          counts.push_back(0);
        }
        own.at = counts[known];
        counts[known] += own.events;
        if (own.ops) m_.threads_[known].takes_part = true;
      }
    }
    for (size_t t = 0; t < counts.size(); ++t)
      m_.threads_[t].events.resize(counts[t]);
    ParallelRanges(
        threads, slices_, kGrain, [&](size_t begin, size_t end, size_t range) {
          ForHostEvents(
              begin, end, ranges[range], [&](OnTrack& own, SliceId s) {
                m_.threads_[thread_of[own.track]].events[own.at++] = s;
              });
        });
    // By process and thread, as text: the order of the nodes of the path.
    std::vector<std::pair<std::string, uint32_t>> order;
    const auto quoted = [&](StringId id) {
      const std::string_view text = trace_.Text(id);
      const bool number =
          !text.empty() &&
          text.find_first_not_of("-0123456789") == std::string_view::npos;
      return number ? std::string(text) : "'" + std::string(text) + "'";
    };
    for (uint32_t i = 0; i < m_.threads_.size(); ++i) {
      const trace::Track& track = trace_.tracks[m_.threads_[i].track.value];
      order.emplace_back(
          "(" + quoted(track.pid) + ", " + quoted(track.tid) + ")", i);
    }
    std::sort(order.begin(), order.end());
    std::vector<Thread> sorted;
    for (const auto& [key, i] : order) {
      thread_of_[m_.threads_[i].track.value] =
          static_cast<uint32_t>(sorted.size());
      sorted.push_back(std::move(m_.threads_[i]));
    }
    m_.threads_ = std::move(sorted);
    Processes();
    const auto& starts = trace_.slices.start_ns;
    const auto& lengths = trace_.slices.dur_ns;
    const auto before = [&](SliceId a, SliceId b) {
      if (starts[a.value] != starts[b.value])
        return starts[a.value] < starts[b.value];
      return lengths[a.value] > lengths[b.value];
    };
    for (Thread& thread : m_.threads_) {
      std::vector<SliceId>& events = thread.events;
      std::atomic<bool> in_order = true;
      ParallelRanges(threads, events.size(), kGrain,
                     [&](size_t begin, size_t end, size_t) {
                       for (size_t i = std::max<size_t>(begin, 1); i < end; ++i)
                         if (before(events[i], events[i - 1])) {
                           in_order = false;
                           return;
                         }
                     });
      // Slices of a thread stand in file order: ties keep it.
      if (!in_order) RunSort(events, threads, before);
    }
  }

  // Numbers of processes, in the order of their threads.
  void Processes() {
    absl::flat_hash_map<StringId, uint32_t> processes;
    for (Thread& thread : m_.threads_) {
      thread.process = processes
                           .try_emplace(trace_.tracks[thread.track.value].pid,
                                        static_cast<uint32_t>(processes.size()))
                           .first->second;
    }
    process_of_.assign(trace_.tracks.size(), kNone);
    for (size_t t = 0; t < process_of_.size(); ++t) {
      const auto it = processes.find(trace_.tracks[t].pid);
      if (it != processes.end()) process_of_[t] = it->second;
    }
  }

  void Calls() {
    m_.call_of_.assign(trace_.device.size(), kNone);
    m_.call_of_api_.assign(trace_.api_calls.size(), kNone);
    m_.calls_.reserve(std::min(trace_.device.size(), trace_.api_calls.size()));
    // Events by (stream, start, uid); calls in the order of their first event.
    for (const trace::Stream& stream : trace_.streams) {
      for (const SliceId s : stream.slices) {
        const tree::NodeId node = context_.tree.launch(s);
        if (!node.valid()) {
          Count("device_events_unlinked");
          continue;
        }
        SliceId api = context_.tree.slice(node);
        while (trace_.captured.Has(api)) api = trace_.captured.Parent(api);
        const uint32_t row = trace_.slices.detail[api.value];
        if (!trace::IsApiCall(trace_.KindOf(api)) || row == kNoRow) {
          Count("device_events_unlinked");
          continue;
        }
        uint32_t& call = m_.call_of_api_[row];
        if (call == kNone) {
          call = static_cast<uint32_t>(m_.calls_.size());
          Call made;
          made.slice = api;
          made.submit_ns = Start(api);
          made.thread = thread_of_[trace_.slices.track[api.value].value];
          m_.calls_.push_back(made);
        }
        ++m_.calls_[call].end;
        m_.call_of_[m_.Row(s)] = call;
        if (Start(s) < Start(api)) Count("starts_before_call");
      }
    }
    uint32_t at = 0;
    for (Call& call : m_.calls_) {
      const uint32_t count = call.end;
      call.begin = call.end = at;
      at += count;
      m_.threads_[call.thread].takes_part = true;
    }
    m_.work_.resize(at);
    for (const trace::Stream& stream : trace_.streams) {
      for (const SliceId s : stream.slices) {
        const uint32_t call = m_.call(s);
        if (call != kNone) m_.work_[m_.calls_[call].end++] = s;
      }
    }
    // APIs: by device, name, one or many.
    for (Call& call : m_.calls_) {
      const auto work = m_.Work(call);
      for (const SliceId s : work) {
        const uint32_t api = AddApi(m_.device(s), call);
        if (call.api == kNone) call.api = api;
      }
      if (work.size() == 1 && trace_.KindOf(work[0]) == Kind::kMemcpy) {
        const int64_t end = End(call.slice);
        call.staged = trace_.Duration(call.slice) > kWaitsForCopyNs &&
                      Start(call.slice) <= Start(work[0]) &&
                      Start(work[0]) < end && end < End(work[0]);
        Count("staged_copies", call.staged ? 1 : 0);
      }
    }
  }

  uint32_t AddApi(uint32_t device, const Call& call) {
    const StringId name = trace_.slices.name[call.slice.value];
    const bool many = call.end - call.begin > 1;
    // Most calls are of the kind of the one before.
    if (!m_.apis_.empty()) {
      const Api& last = m_.apis_[last_api_];
      if (last.device == device && last.name == name && last.many == many)
        return last_api_;
    }
    const auto [it, is_new] =
        api_of_.try_emplace({device, name.value * 2 + (many ? 1 : 0)},
                            static_cast<uint32_t>(m_.apis_.size()));
    last_api_ = it->second;
    if (is_new) {
      Api api;
      api.device = device;
      api.name = name;
      api.many = many;
      m_.apis_.push_back(api);
    }
    return it->second;
  }

  // What calls of a name take.
  void UsualTimes() {
    std::map<StringId, std::vector<int64_t>> times;
    StringId last;  // most calls have the name of the one before
    std::vector<int64_t>* of_last = nullptr;
    for (const Call& call : m_.calls_) {
      const StringId name = trace_.slices.name[call.slice.value];
      if (of_last == nullptr || name != last) of_last = &times[name];
      last = name;
      of_last->push_back(trace_.Duration(call.slice));
    }
    // Of few calls all may be slow: the first use of a kernel loads it.
    constexpr size_t kMany = 40;
    for (auto& [name, values] : times) {
      const int64_t median = Pick(values, 0.5);
      m_.typical_.emplace_back(name, values.size() < kMinSamples
                                         ? std::min(median, kMaxLatencyNs)
                                         : median);
      m_.usual_.emplace_back(
          name, values.size() < kMany ? median : Pick(values, 0.25));
    }
  }

  // Launch calls that wait because the queue of their stream is full: longer
  // than usual with many launches outstanding, and nearly all of them return
  // when the same number of launches has not started.
  void FullQueues() {
    for (uint32_t i = 0; i < m_.orders_.size(); ++i) FindFullQueue(i);
  }

  void FindFullQueue(uint32_t stream) {
    const HostModel::Order& order = m_.orders_[stream];
    if (order.work.size() <= kNearlyFull) return;
    FullQueue queue;
    queue.stream = stream;
    uint32_t before = kNone;
    // Work of one launch stands together unless launches begin at one time.
    for (const SliceId s : order.work) {
      const uint32_t c = m_.call(s);
      if (c == kNone || c == before) continue;
      before = c;
      queue.first.push_back(s);
    }
    const size_t count = queue.first.size();
    if (count <= kNearlyFull) return;
    for (size_t k = 1; k < count; ++k) {
      if (Start(queue.first[k - 1]) > Start(queue.first[k])) return;
    }
    const auto call_of = [&](size_t k) -> Call& {
      return m_.calls_[m_.call(queue.first[k])];
    };
    // Launches that had started when call k began, and when it returned.
    std::vector<size_t> at_start(count), at_end(count);
    size_t near = 0, near_end = 0;
    const auto started = [&](int64_t time, size_t* from) {
      return *from = BoundNear(count, *from, [&](size_t n) {
        return Start(queue.first[n]) <= time;
      });
    };
    std::vector<int64_t> free;
    for (size_t k = 0; k < count; ++k) {
      at_start[k] = started(Start(call_of(k).slice), &near);
      at_end[k] = started(End(call_of(k).slice), &near_end);
      if (k < at_start[k] + kNearlyFull)
        free.push_back(trace_.Duration(call_of(k).slice));
    }
    queue.usual_ns = Pick(free, 0.5);
    if (queue.usual_ns == 0) queue.usual_ns = 3000;
    std::map<size_t, size_t> lags;
    size_t late = 0;
    std::vector<StringId> names;
    for (size_t k = 0; k < count; ++k) {
      const int64_t took = trace_.Duration(call_of(k).slice);
      if (k < at_start[k] + kNearlyFull ||
          2 * took <= 3 * queue.usual_ns + 2000)
        continue;
      ++late;
      if (k + 1 >= at_end[k]) ++lags[k + 1 - at_end[k]];
      const StringId name = trace_.slices.name[call_of(k).slice.value];
      if (names.empty() || names.back() != name) names.push_back(name);
    }
    size_t most = 0;
    for (const auto& [lag, calls] : lags) {
      if (calls > most) queue.depth = lag;
      most = std::max(most, calls);
    }
    if (most < std::max<size_t>(3, late / 2) || queue.depth == 0) return;
    for (size_t k = queue.depth; k < count; ++k) {
      Call& call = call_of(k);
      const size_t lag = k + 1 - std::min(at_end[k], k + 1);
      call.full = trace_.Duration(call.slice) > queue.usual_ns &&
                  lag + 1 >= queue.depth && lag <= queue.depth + 1;
      Count("calls_at_a_full_queue", call.full ? 1 : 0);
    }
    Count("queue_depth", static_cast<int64_t>(queue.depth));
    for (auto& [name, usual] : m_.usual_) {
      if (std::find(names.begin(), names.end(), name) != names.end())
        usual = std::min(usual, queue.usual_ns);
    }
    m_.full_queues_.push_back(std::move(queue));
  }

  // Calls that take much longer than usual, and floors of launching.
  void Floors() {
    StringId last;
    int64_t usual = 0;
    bool copies = false;
    for (Call& call : m_.calls_) {
      const StringId name = trace_.slices.name[call.slice.value];
      if (name != last || !last.valid()) {
        usual = m_.Typical(name);
        const CallKind kind = CallKindOf(trace_.Text(name));
        copies = kind == CallKind::kCopy || kind == CallKind::kBlockingCopy;
      }
      last = name;
      call.slow =
          trace_.Duration(call.slice) > kSlow * usual && !copies && !call.full;
    }
    std::vector<std::vector<int64_t>> idle(m_.apis_.size());
    for (const trace::Stream& stream : trace_.streams) {
      int64_t reached = kNoInt;
      for (const SliceId s : stream.slices) {
        const uint32_t c = m_.call(s);
        if (reached != kNoInt && c != kNone) {
          const Call& call = m_.calls_[c];
          const int64_t start = Start(call.slice);
          if (!call.staged && !call.slow && reached <= start &&
              start <= Start(s))
            idle[m_.ApiOf(s, call)].push_back(Start(s) - start);
        }
        reached = std::max(reached, End(s));
      }
    }
    for (size_t i = 0; i < m_.apis_.size(); ++i) {
      Api& api = m_.apis_[i];
      api.samples = idle[i].size();
      if (api.samples < kMinSamples) {
        Count("launch_floor_assumed");
        continue;
      }
      api.floor_ns = std::min(kMaxLatencyNs, Pick(idle[i], 0.10));
    }
  }

  void SubmitPoints() {
    for (Call& call : m_.calls_) {
      if (!call.slow) continue;
      Count("slow_launch_calls");
      int64_t submit =
          End(call.slice) - m_.Typical(trace_.slices.name[call.slice.value]);
      for (const SliceId s : m_.Work(call))
        submit =
            std::min(submit, Start(s) - m_.apis_[m_.ApiOf(s, call)].floor_ns);
      call.submit_ns = std::max(Start(call.slice), submit);
    }
  }

  void Gaps() {
    ParallelFor(context_.settings.threads, trace_.streams.size(),
                [&](size_t i) {
                  std::vector<int64_t> launches, graph;
                  int64_t reached = kNoInt;
                  SliceId previous;
                  for (const SliceId s : trace_.streams[i].slices) {
                    if (reached != kNoInt && Start(s) >= reached &&
                        m_.call(s) != kNone) {
                      if (m_.SameCall(previous, s)) {
                        graph.push_back(Start(s) - reached);
                      } else if (m_.Ready(s) <= reached) {
                        launches.push_back(Start(s) - reached);
                      }
                    }
                    reached = std::max(reached, End(s));
                    previous = s;
                  }
                  StreamFacts& facts = m_.streams_[i];
                  facts.gap_known = !launches.empty();
                  facts.graph_gap_known = !graph.empty();
                  if (launches.size() >= kMinSamples)
                    facts.gap_ns = std::min(kMaxGapNs, Pick(launches, 0.25));
                  if (graph.size() >= kMinSamples)
                    facts.graph_gap_ns = std::min(kMaxGapNs, Pick(graph, 0.25));
                });
  }

  // What the profiler recorded of waits.
  void ReadSyncs() {
    if (!m_.options_.sync_records) return;
    if (trace_.api_calls.empty()) return;
    for (uint32_t i = 0; i < slices_; ++i) {
      if (trace_.slices.kind[i] != Kind::kOther ||
          trace_.slices.detail[i] == kNoRow)
        continue;
      const SliceId s(i);
      const auto sync = trace::SyncOf(trace_, s);
      if (!sync || trace_.Category(s) != "cuda_sync") continue;
      // As Kineto and Nsight Systems call it.
      if (trace_.Name(s) == "Stream Wait Event" ||
          trace_.Name(s) == "Stream wait sync") {
        stream_waits_.push_back(*sync);
      } else if (sync->correlation != kNoInt) {
        call_syncs_[sync->correlation] = *sync;
      }
    }
  }

  // Per stream: when its work was launched, and what ends last of all work
  // launched up to each.
  void LaunchOrder() {
    m_.orders_.resize(trace_.streams.size());
    ParallelFor(context_.settings.threads, trace_.streams.size(),
                [&](size_t i) {
                  HostModel::Order& order = m_.orders_[i];
                  order.work = trace_.streams[i].slices;
                  const auto launched = [&](SliceId s) {
                    const uint32_t c = m_.call(s);
                    return c == kNone ? Start(s) : Start(m_.calls_[c].slice);
                  };
                  RunSort(order.work, 1, [&](SliceId a, SliceId b) {
                    const int64_t x = launched(a), y = launched(b);
                    return x != y ? x < y : trace_.Uid(a) < trace_.Uid(b);
                  });
                  order.launched.reserve(order.work.size());
                  order.last.reserve(order.work.size());
                  SliceId last;
                  int64_t reached = kNoInt;
                  for (const SliceId s : order.work) {
                    order.launched.push_back(launched(s));
                    const int64_t end = End(s);
                    if (!last.valid() || end >= reached) {
                      last = s;
                      reached = end;
                    }
                    order.last.push_back(last);
                  }
                });
    // The processes that launch into each stream: a call waits for the work of
    // its own process, and for that of nobody known.
    stream_process_.assign(trace_.streams.size(), StringId());
    for (size_t i = 0; i < trace_.streams.size(); ++i) {
      for (const SliceId s : trace_.streams[i].slices) {
        const uint32_t c = m_.call(s);
        if (c == kNone) continue;
        stream_process_[i] = ProcessOf(m_.calls_[c].slice);
        break;
      }
    }
  }

  StringId ProcessOf(SliceId s) const { return trace_.TrackOf(s).pid; }

  // A call that may wait for the device.
  struct Candidate {
    SliceId slice, last;
    uint32_t thread = kNone;
    WaitHow how = WaitHow::kDevice;
  };

  // A call that makes a stream wait, the event record before it on its thread
  // and the first work that its thread launched after it.
  struct WaitingStream {
    SliceId call, record, work;
  };

  bool Named(SliceId s, int64_t* correlation) const {
    const trace::ApiArgs* api = trace_.Api(s);
    if (api == nullptr || api->correlation == kNoInt) return false;
    *correlation = api->correlation;
    return true;
  }

  // Whether work ended in a frame or range shortly before it returned: else it
  // waited for something else, as for threads that launch.
  bool EndsWithWork(SliceId s) const {
    const int64_t start = Start(s), end = End(s);
    const int64_t near = std::max(kReturnsWithinNs, (end - start) / 10);
    return std::any_of(
        m_.ends_.begin(), m_.ends_.end(), [&](const HostModel::Ends& ends) {
          const auto behind =
              std::partition_point(ends.work.begin(), ends.work.end(),
                                   [&](SliceId k) { return End(k) <= end; });
          return behind != ends.work.begin() &&
                 End(*std::prev(behind)) > std::max(start, end - near);
        });
  }

  // One walk over all calls: those that may wait, records of events, streams
  // that wait, and what records of waits name.
  void FindCalls() {
    for (const trace::SyncRecord& wait : stream_waits_) {
      named_.try_emplace(wait.correlation, SliceId());
      named_.try_emplace(wait.source_record, SliceId());
    }
    for (const auto& [correlation, sync] : call_syncs_) {
      if (sync.source_record > 0)
        named_.try_emplace(sync.source_record, SliceId());
    }
    // Names decide; each is looked at once.
    std::vector<int8_t> kinds(trace_.strings.size(), -1);
    for (uint32_t t = 0; t < m_.threads_.size(); ++t) {
      std::vector<SliceId> queries;
      const auto flush = [&] {
        if (queries.size() >= kPoll && m_.threads_[t].takes_part)
          candidates_.push_back(
              {queries.front(), queries.back(), t, WaitHow::kPoll});
        queries.clear();
      };
      SliceId record;
      size_t pending = waiting_streams_.size();  // the first without work
      std::vector<SliceId> others;  // frames that wait for something else
      for (const SliceId s : m_.threads_[t].events) {
        if (trace_.KindOf(s) == Kind::kOp) continue;
        if (IsDeviceWait(s)) {
          if (EndsWithWork(s)) {
            candidates_.push_back({s, s, t, WaitHow::kEvent});
          } else {
            others.push_back(s);
          }
          continue;
        }
        if (!named_.empty()) {
          int64_t correlation = 0;
          if (Named(s, &correlation) && correlation > 0) {
            const auto it = named_.find(correlation);
            if (it != named_.end() && !it->second.valid()) it->second = s;
          }
        }
        int8_t& known = kinds[trace_.slices.name[s.value].value];
        if (known < 0) known = static_cast<int8_t>(CallKindOf(trace_.Name(s)));
        const auto kind = static_cast<CallKind>(known);
        if (kind == CallKind::kQuery) {
          queries.push_back(s);
          continue;
        }
        if (!queries.empty()) flush();
        const auto may_wait = [&](WaitHow how) {
          candidates_.push_back({s, s, t, how});
        };
        switch (kind) {
          case CallKind::kDeviceSync:
            may_wait(WaitHow::kDevice);
            continue;
          case CallKind::kStreamSync:
            may_wait(WaitHow::kStream);
            continue;
          case CallKind::kEventSync:
            may_wait(WaitHow::kEvent);
            continue;
          case CallKind::kFree:
            if (trace_.Duration(s) > kWaitsToFreeNs) may_wait(WaitHow::kFree);
            continue;
          case CallKind::kRecord:
            records_.push_back(record = s);
            continue;
          case CallKind::kStreamWait:
            waiting_streams_.push_back({s, record, {}});
            continue;
          default:
            break;
        }
        const uint32_t c = m_.CallOf(s);
        if (c == kNone) continue;
        const auto work = m_.Work(m_.calls_[c]);
        for (; pending < waiting_streams_.size(); ++pending)
          waiting_streams_[pending].work =
              *std::min_element(work.begin(), work.end(), [&](auto a, auto b) {
                return std::pair(Start(a), a.value) <
                       std::pair(Start(b), b.value);
              });
        int64_t end = kNoInt;
        for (const SliceId k : work) end = std::max(end, End(k));
        if (m_.calls_[c].staged) {
          may_wait(WaitHow::kStaged);
        } else if (end <= End(s) &&
                   (kind == CallKind::kBlockingCopy ||
                    (work.size() == 1 &&
                     trace_.KindOf(work[0]) == Kind::kMemcpy &&
                     trace_.Duration(s) > kWaitsForCopyNs &&
                     Start(s) <= Start(work[0]) && Start(work[0]) < End(s)))) {
          may_wait(WaitHow::kCopy);
        }
      }
      flush();
      waiting_streams_.resize(pending);
      // They are in the order of the events.
      size_t next = 0;
      std::erase_if(m_.threads_[t].events, [&](SliceId s) {
        if (next == others.size() || others[next] != s) return false;
        ++next;
        return true;
      });
    }
    std::stable_sort(records_.begin(), records_.end(),
                     [&](auto a, auto b) { return Start(a) < Start(b); });
  }

  void Waits() {
    for (const Candidate& candidate : candidates_) AddWait(candidate);
  }

  // Whether a call of the host can wait for the work of a stream: work of its
  // own process, and that of nobody known.
  bool Reaches(SliceId call, uint32_t stream) const {
    return !stream_process_[stream].valid() ||
           stream_process_[stream] == ProcessOf(call);
  }

  void AddWait(const Candidate& candidate) {
    const SliceId s = candidate.slice;
    Wait wait;
    wait.slice = s;
    wait.last = candidate.last;
    wait.thread = candidate.thread;
    wait.how = candidate.how;
    wait.begin = static_cast<uint32_t>(m_.sources_.size());
    const int64_t begin = Start(s), end = End(wait.last);
    bool recorded = true;
    const auto add = [&](SliceId k, uint8_t readings = kAllReadings) {
      if (!k.valid()) return;
      if (End(k) > end) Count("sync_target_after_return");
      if (End(k) - end > kClockNs) return;  // more than clocks differ
      m_.sources_.push_back({k, readings});
      if ((readings & kBest) == 0 || End(k) <= begin) return;
      if (!wait.target.valid() ||
          std::pair(End(k), trace_.Uid(k)) >
              std::pair(End(wait.target), trace_.Uid(wait.target)))
        wait.target = k;
    };
    switch (wait.how) {
      case WaitHow::kCopy:
      case WaitHow::kStaged: {
        SliceId last;
        for (const SliceId k : m_.Work(m_.calls_[m_.CallOf(s)])) {
          if (!last.valid() || End(k) > End(last)) last = k;
        }
        if (wait.how == WaitHow::kCopy) add(last);
        wait.end = static_cast<uint32_t>(m_.sources_.size());
        Push(wait);
        return;
      }
      case WaitHow::kDevice:
      case WaitHow::kFree:
        ForStreams(s, [&](uint32_t i) { add(m_.LatestBefore(i, begin)); });
        break;
      case WaitHow::kStream:
        recorded = WaitForStream(s, begin, end, add);
        break;
      case WaitHow::kEvent:
      case WaitHow::kPoll:
        recorded = WaitForEvent(candidate, begin, end, add);
        break;
    }
    wait.end = static_cast<uint32_t>(m_.sources_.size());
    // Of several devices it is not known which one was waited for, and an event
    // may lie before the last work.
    if (recorded && m_.devices_.size() == 1 &&
        (wait.how == WaitHow::kDevice || wait.how == WaitHow::kStream)) {
      ++m_.returns_.calls;
      if (wait.target.valid() && End(wait.target) > end)
        m_.returns_.early_ns.push_back(End(wait.target) - end);
    }
    if (wait.target.valid()) {
      wait.inferred = !recorded;
      Count(recorded ? "sync_edges_recorded" : "sync_edges_inferred");
    } else if (wait.how != WaitHow::kFree) {
      Count("sync_calls_without_wait");
    }
    if (wait.inferred && !m_.options_.infer) {
      m_.sources_.resize(wait.begin);
      wait.end = wait.begin;
      wait.target = {};
    }
    Push(wait);
  }

  template <class F>
  void ForStreams(SliceId call, const F& f) const {
    for (uint32_t i = 0; i < m_.orders_.size(); ++i) {
      if (Reaches(call, i)) f(i);
    }
  }

  const trace::SyncRecord* RowOf(SliceId s) const {
    int64_t correlation = 0;
    if (!Named(s, &correlation)) return nullptr;
    const auto it = call_syncs_.find(correlation);
    return it == call_syncs_.end() ? nullptr : &it->second;
  }

  // The stream of a number in a record of a call, on its device where that is
  // known; kNone: it names none, or several of the process.
  uint32_t StreamOf(SliceId call, int64_t number, int64_t device) const {
    if (number < 0 || number >= int64_t{1} << 31) return kNone;
    uint32_t found = kNone;
    for (uint32_t i = 0; i < trace_.streams.size(); ++i) {
      if (trace_.streams[i].stream != number || !Reaches(call, i)) continue;
      if (trace_.streams[i].device == device) return i;
      if (found != kNone) return kNone;
      found = i;
    }
    return found;
  }

  // Whether it is recorded which stream the call waited for.
  template <class Add>
  bool WaitForStream(SliceId s, int64_t begin, int64_t end, const Add& add) {
    const trace::SyncRecord* const row = RowOf(s);
    uint32_t on =
        row == nullptr ? kNone : StreamOf(s, row->stream, row->device);
    const trace::ApiArgs* const api = trace_.Api(s);
    if (on == kNone && api != nullptr) on = StreamOf(s, api->stream, kNoInt);
    if (on == kNone && m_.orders_.size() == 1) on = 0;
    if (on != kNone) {
      add(m_.LatestBefore(on, begin));
      return true;
    }
    // The latest end within the call; where there is none the call may have
    // waited for any of them, or for nothing.
    std::vector<SliceId> all;
    SliceId latest;
    ForStreams(s, [&](uint32_t i) {
      const SliceId k = m_.LatestBefore(i, begin);
      if (!k.valid() || End(k) > end + kTouchNs) return;
      all.push_back(k);
      if (End(k) > begin && (!latest.valid() || End(k) > End(latest)))
        latest = k;
    });
    add(latest);
    for (const SliceId k : all) {
      if (k != latest) add(k, kLow);
    }
    return false;
  }

  // An event by its record, else by the order of records, else by time.
  template <class Add>
  bool WaitForEvent(const Candidate& candidate, int64_t begin, int64_t end,
                    const Add& add) {
    const SliceId s = candidate.slice;
    const trace::SyncRecord* const row =
        candidate.how == WaitHow::kPoll ? nullptr : RowOf(s);
    const uint32_t on =
        row == nullptr ? kNone : StreamOf(s, row->source_stream, row->device);
    SliceId latest;
    const auto better = [&](SliceId k) {
      if (k.valid() && (!latest.valid() || End(k) > End(latest))) latest = k;
    };
    if (row != nullptr && row->source_record > 0) {
      const SliceId record = named_.at(row->source_record);
      if (record.valid()) {
        ForStreams(s, [&](uint32_t i) {
          if (on != kNone && i != on) return;
          const SliceId k = m_.LatestBefore(i, Start(record));
          if (k.valid() && End(k) <= end + kTouchNs) better(k);
        });
        add(latest);
        return true;
      }
    }
    // The last query still found the event missing.
    const int64_t limit =
        candidate.how == WaitHow::kPoll ? Start(candidate.last) : end;
    const auto behind = std::partition_point(
        records_.begin(), records_.end(),
        [&](SliceId record) { return Start(record) < begin; });
    const auto first =
        behind - std::min<ptrdiff_t>(kMostRecords, behind - records_.begin());
    // Frames and ranges know no records: by time alone.
    const auto streams = [&](const auto& f) {
      if (IsHost(trace_.KindOf(s))) ForStreams(s, f);
    };
    streams([&](uint32_t i) {
      // Later records have later ends before them.
      const auto at = std::partition_point(first, behind, [&](SliceId record) {
        const SliceId k = m_.LatestBefore(i, Start(record));
        return !k.valid() || End(k) <= limit;
      });
      if (at == first) return;
      const SliceId k = m_.LatestBefore(i, Start(*std::prev(at)));
      if (k.valid() && End(k) > begin) better(k);
    });
    if (!latest.valid()) {
      for (const HostModel::Ends& ends : m_.ends_) {
        const auto at =
            std::partition_point(ends.work.begin(), ends.work.end(),
                                 [&](SliceId k) { return End(k) <= limit; });
        if (at != ends.work.begin() && End(*std::prev(at)) > begin)
          better(*std::prev(at));
      }
    }
    if (latest.valid()) {
      add(latest);
    } else if (behind != records_.begin()) {
      streams([&](uint32_t i) {
        add(m_.LatestBefore(i, Start(*std::prev(behind))), kLow);
      });
    }
    return false;
  }

  void Push(const Wait& wait) {
    m_.threads_[wait.thread].waits.push_back(
        static_cast<uint32_t>(m_.waits_.size()));
    m_.waits_.push_back(wait);
  }

  // Waits of one stream for an event of another.
  void Dependencies() {
    m_.waits_recorded_ = !stream_waits_.empty();
    absl::flat_hash_set<SliceId> known;
    for (const trace::SyncRecord& wait : stream_waits_) {
      const SliceId call = named_.at(wait.correlation);
      const SliceId record = named_.at(wait.source_record);
      const uint32_t from = StreamOn(wait.device, wait.source_stream);
      const uint32_t to = StreamOn(wait.device, wait.stream);
      if (!call.valid() || to == kNone || from == to) {
        Count("waits_unresolved");
        continue;
      }
      known.insert(call);
      const SliceId b = LaunchedAfter(to, Start(call));
      if (!b.valid()) {
        Count("waits_unresolved");
        continue;
      }
      if (from == kNone) {
        m_.wait_calls_.push_back({b, Start(call), RecordBefore(call)});
        continue;
      }
      const SliceId a =
          m_.LatestBefore(from, Start(record.valid() ? record : call));
      if (!a.valid()) {
        Count("waits_unresolved");
      } else if (End(a) <= Start(b) + kTouchNs) {
        m_.dependencies_.emplace_back(b, a);
        Count("waits_recorded");
      } else {
        Count("waits_violated");
      }
    }
    if (m_.orders_.size() > 1) {
      for (const WaitingStream& wait : waiting_streams_) {
        if (known.contains(wait.call)) continue;
        m_.wait_calls_.push_back(
            {wait.work, Start(wait.call),
             wait.record.valid() ? Start(wait.record) : kNoInt});
      }
    }
    std::stable_sort(
        m_.dependencies_.begin(), m_.dependencies_.end(),
        [](const auto& x, const auto& y) { return x.first < y.first; });
    std::stable_sort(
        m_.wait_calls_.begin(), m_.wait_calls_.end(),
        [](const auto& x, const auto& y) { return x.work < y.work; });
  }

  // The last record of an event before a call on its thread.
  int64_t RecordBefore(SliceId call) const {
    auto at = std::partition_point(
        records_.begin(), records_.end(),
        [&](SliceId record) { return Start(record) < Start(call); });
    for (int i = 0; i < kMostRecords && at != records_.begin(); ++i) {
      --at;
      if (trace_.slices.track[at->value] == trace_.slices.track[call.value])
        return Start(*at);
    }
    return kNoInt;
  }

  uint32_t StreamOn(int64_t device, int64_t number) const {
    for (uint32_t i = 0; i < trace_.streams.size(); ++i) {
      if (trace_.streams[i].device == device &&
          trace_.streams[i].stream == number)
        return i;
    }
    return kNone;
  }

  // The first work of a stream that was launched from a time on.
  SliceId LaunchedAfter(uint32_t stream, int64_t time) const {
    const HostModel::Order& order = m_.orders_[stream];
    const auto i = static_cast<size_t>(
        std::lower_bound(order.launched.begin(), order.launched.end(), time) -
        order.launched.begin());
    return i < order.work.size() ? order.work[i] : SliceId();
  }

  void Ends() {
    m_.ends_.resize(m_.devices_.size());
    ParallelFor(context_.settings.threads, m_.devices_.size(), [&](size_t d) {
      auto& ends = m_.ends_[d];
      // Stream by stream, where ends follow each other.
      ends.work.reserve(m_.devices_[d].work.size());
      for (const uint32_t stream : m_.devices_[d].streams) {
        const auto& slices = trace_.streams[stream].slices;
        ends.work.insert(ends.work.end(), slices.begin(), slices.end());
      }
      RunSort(ends.work, 1, [&](SliceId a, SliceId b) {
        const int64_t x = End(a), y = End(b);
        return x != y ? x < y : trace_.Uid(a) < trace_.Uid(b);
      });
      ends.other.resize(ends.work.size(), kNone);
      for (size_t i = 1; i < ends.work.size(); ++i) {
        ends.other[i] = m_.stream(ends.work[i - 1]) == m_.stream(ends.work[i])
                            ? ends.other[i - 1]
                            : static_cast<uint32_t>(i - 1);
      }
    });
  }

  void OperatingSystem() {
    std::vector<bool> launches(m_.threads_.size());
    for (const Call& call : m_.calls_) launches[call.thread] = true;
    std::vector<uint32_t> of;
    std::vector<trace::TrackId> tracks;
    for (uint32_t t = 0; t < m_.threads_.size(); ++t) {
      if (!launches[t]) continue;
      of.push_back(t);
      tracks.push_back(m_.threads_[t].track);
    }
    std::vector<OsRecords> found = FindOsRecords(trace_, slices_, tracks);
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i].active.intervals().empty())
        found[i].active = found[i].active.Minus(m_.host_of(m_.threads_[of[i]]));
      m_.threads_[of[i]].os = std::move(found[i]);
    }
  }

  void Covers() {
    for (const Wait& wait : m_.waits_) {
      if (!wait.target.valid()) continue;
      blocked_.resize(m_.threads_.size());
      copies_.resize(m_.threads_.size());
      const Interval i{Start(wait.slice), m_.EndOf(wait)};
      blocked_[wait.thread].push_back(i);
      if (wait.copies()) copies_[wait.thread].push_back(i);
    }
    for (size_t t = 0; t < blocked_.size(); ++t) {
      m_.threads_[t].blocked = Cover(std::move(blocked_[t]));
      m_.threads_[t].copies = Cover(std::move(copies_[t]));
    }
  }

  // Threads for whose launches many devices wait.
  void Crowds() {
    constexpr int64_t kMostWaiting = 16;
    if (m_.devices_.size() <= kMostWaiting) return;
    std::vector<int64_t> waiting(m_.threads_.size(), 0);
    int64_t first = trace::kNoInt, end = trace::kNoInt;
    for (const DeviceFacts& device : m_.devices_) {
      for (const WorkStretch& stretch :
           CutWork(trace_, device.work, context_.settings.threads)) {
        ForGaps(trace_, device.work, stretch,
                [&](const Interval& gap, SliceId next, SliceId before) {
                  const uint32_t c = m_.call(next);
                  if (c == kNone || m_.SameCall(before, next)) return;
                  waiting[m_.calls_[c].thread] += gap.length_ns();
                });
        end = std::max(end, End(stretch.behind));
      }
      if (device.work.empty()) continue;
      const int64_t start = Start(device.work[0]);
      first = first == trace::kNoInt ? start : std::min(first, start);
    }
    for (size_t t = 0; t < waiting.size(); ++t) {
      m_.threads_[t].crowded =
          waiting[t] / kMostWaiting > std::max<int64_t>(1, end - first);
    }
  }

  // `within`: where to look; null: everywhere.
  void AnyHost(const Cover* within) {
    constexpr size_t kGrain = size_t{1} << 16;
    const int threads = context_.settings.threads;
    struct Range {
      const Thread*
          thread;  // null: all slices, of which frames and annotations
      size_t begin, end;
    };
    std::vector<Range> ranges;
    const auto cut = [&](const Thread* thread, size_t count) {
      for (size_t begin = 0; begin < count; begin += kGrain)
        ranges.push_back({thread, begin, std::min(count, begin + kGrain)});
    };
    for (const Thread& thread : m_.threads_) cut(&thread, thread.events.size());
    cut(nullptr, slices_);
    // By process.
    std::vector<absl::flat_hash_map<uint32_t, std::vector<Interval>>> found(
        ranges.size());
    ParallelFor(threads, ranges.size(), [&](size_t r) {
      const Range& range = ranges[r];
      uint32_t process = kNone;  // that of `last`
      std::vector<Interval>* last = nullptr;
      size_t near = 0;
      const auto wanted = [&](const Interval& here) {
        if (here.end_ns <= here.start_ns) return false;
        if (within == nullptr) return true;
        near = within->FirstAfter(here.start_ns, near);
        const auto all = within->intervals();
        return near < all.size() && all[near].start_ns < here.end_ns;
      };
      for (size_t i = range.begin; i < range.end; ++i) {
        uint32_t s = static_cast<uint32_t>(i);
        if (range.thread != nullptr) {
          s = range.thread->events[i].value;
        } else {
          const Kind kind = trace_.slices.kind[s];
          if (kind != Kind::kPython && kind != Kind::kAnnotation) continue;
        }
        const uint32_t of = process_of_[trace_.slices.track[s].value];
        if (of == kNone) continue;
        if (last == nullptr || of != process) last = &found[r][of];
        process = of;
        std::vector<Interval>& own = *last;
        const int64_t start = trace_.slices.start_ns[s];
        const Interval here{start, start + trace_.slices.dur_ns[s]};
        // Mostly it lies in the one before, or goes on from it.
        if (!own.empty() && own.back().start_ns <= here.start_ns &&
            here.start_ns <= own.back().end_ns) {
          own.back().end_ns = std::max(own.back().end_ns, here.end_ns);
        } else if (wanted(here)) {
          own.push_back(here);
        }
      }
    });
    std::vector<std::vector<Interval>> all;
    for (auto& range : found) {
      for (auto& [of, own] : range) {
        if (of >= all.size()) all.resize(of + 1);
        all[of].insert(all[of].end(), own.begin(), own.end());
      }
      range = {};
    }
    m_.hosts_.clear();
    for (std::vector<Interval>& own : all) {
      RunSort(own, threads, [](const Interval& a, const Interval& b) {
        return a.start_ns < b.start_ns;
      });
      m_.hosts_.emplace_back(std::move(own));
    }
  }

  const Context& context_;
  const Trace& trace_;
  HostModel& m_;
  std::mutex counting_;
  uint32_t slices_ = 0;               // without captured ones
  std::vector<uint32_t> thread_of_;   // by track
  std::vector<uint32_t> process_of_;  // by track; kNone: it has no threads
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> api_of_;
  uint32_t last_api_ = 0;
  std::vector<bool> device_wait_;  // by name; empty: there are none
  std::vector<trace::SyncRecord> stream_waits_;
  absl::flat_hash_map<int64_t, trace::SyncRecord> call_syncs_;
  // Calls that those records name, by correlation.
  absl::flat_hash_map<int64_t, SliceId> named_;
  std::vector<Candidate> candidates_;  // by thread and start
  std::vector<SliceId> records_;       // of events, by start
  std::vector<WaitingStream> waiting_streams_;
  std::vector<StringId> stream_process_;
  std::vector<std::vector<Interval>> blocked_, copies_;
};

HostModel HostModel::Build(const Context& context, const Options& options) {
  HostModel model;
  Builder(context, options, model).Run();
  return model;
}

void HostModel::FindAnyHost() {
  if (options_.any_host) return;
  Options options = options_;
  options.any_host = true;
  Builder(*context_, options, *this).RunAnyHost();
}

WorkKind HostModel::kind(SliceId s) const {
  switch (trace().KindOf(s)) {
    case Kind::kMemcpy:
      return WorkKind::kCopy;
    case Kind::kMemset:
      return WorkKind::kFill;
    default:
      return context_->device.communication(s) ? WorkKind::kComm
                                               : WorkKind::kCompute;
  }
}

uint32_t HostModel::CallOf(SliceId api) const {
  const uint32_t row = trace().slices.detail[api.value];
  return trace::IsApiCall(trace().KindOf(api)) && row != kNoRow
             ? call_of_api_[row]
             : kNone;
}

namespace {

int64_t TimeOf(const std::vector<std::pair<StringId, int64_t>>& times,
               StringId name) {
  const auto it = std::lower_bound(
      times.begin(), times.end(), name,
      [](const auto& entry, StringId id) { return entry.first < id; });
  return it != times.end() && it->first == name ? it->second : 0;
}

}  // namespace

int64_t HostModel::Typical(StringId name) const {
  return TimeOf(typical_, name);
}

int64_t HostModel::Usual(StringId name) const { return TimeOf(usual_, name); }

SliceId HostModel::LatestBefore(uint32_t stream, int64_t time) const {
  const Order& order = orders_[stream];
  const auto at =
      std::lower_bound(order.launched.begin(), order.launched.end(), time) -
      order.launched.begin();
  return at == 0 ? SliceId() : order.last[static_cast<size_t>(at) - 1];
}

uint32_t HostModel::ApiOf(SliceId s, const Call& call) const {
  if (apis_[call.api].device == device(s)) return call.api;
  for (uint32_t i = 0; i < apis_.size(); ++i) {
    const Api& api = apis_[i];
    if (api.device == device(s) && api.name == apis_[call.api].name &&
        api.many == apis_[call.api].many)
      return i;
  }
  return call.api;
}

int64_t HostModel::Floor(SliceId s) const {
  return apis_[ApiOf(s, calls_[call(s)])].floor_ns;
}

int64_t HostModel::Ready(SliceId s) const {
  const Call& launch = calls_[call(s)];
  return launch.staged ? trace().Start(s) : launch.submit_ns + Floor(s);
}

std::span<const std::pair<SliceId, SliceId>> HostModel::Dependencies(
    SliceId s) const {
  const auto [first, last] = std::equal_range(
      dependencies_.begin(), dependencies_.end(), std::pair(s, SliceId()),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  return {first, last};
}

SliceId HostModel::Infer(SliceId s, int64_t after, size_t* near) const {
  // More events than this end at one time in no recording: a limit for files
  // that were made to be slow.
  constexpr int kMostSteps = 1024;
  if (!options_.infer) return {};
  const Ends& ends = ends_[device(s)];
  const int64_t start = trace().Start(s);
  const size_t behind = BoundNear(ends.work.size(), *near, [&](size_t k) {
    return trace().End(ends.work[k]) <= start + kRoundedNs;
  });
  *near = behind;
  if (behind == 0) return {};
  auto i = static_cast<uint32_t>(behind - 1);
  for (int step = 0; step < kMostSteps && i != kNone; ++step) {
    const SliceId k = ends.work[i];
    if (trace().End(k) <= after || start - trace().End(k) > kNearNs) break;
    if (stream(k) == stream(s)) {
      i = ends.other[i];
      continue;
    }
    if (trace().Start(k) < start) return k;
    i = i == 0 ? kNone : i - 1;
  }
  return {};
}

}  // namespace lamina::analysis::host
