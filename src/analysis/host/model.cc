// SPDX-License-Identifier: Apache-2.0
//
// One file, because each step needs what the one before it found: threads and
// calls, floors, submit points, calls that wait, waits between streams. Every
// step is linear in events or sorts them once.
#include "analysis/host/model.h"

#include <absl/container/flat_hash_map.h>
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
  if (rest.starts_with("Memcpy")) return CallKind::kCopy;
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
      if (i == 0) {
        Floors();
        SubmitPoints();
        Gaps();
      }
      if (i == 1) {
        LaunchOrder();
        Waits();
        Dependencies();
      }
    });
    Covers();
    if (m_.options_.any_host) OperatingSystem();
  }

  void RunAnyHost() {
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
      if (!IsHost(trace_.slices.kind[i])) continue;
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
          ForHostEvents(begin, end, ranges[range],
                        [&](OnTrack& own, SliceId s) {
                          ++own.events;
                          own.ops = own.ops || trace_.KindOf(s) == Kind::kOp;
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
        call.staged = Start(work[0]) < end && end < End(work[0]) &&
                      2 * (end - Start(work[0])) >= trace_.Duration(work[0]);
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

  // Calls that take much longer than usual, and floors of launching.
  void Floors() {
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
    for (auto& [name, values] : times) {
      const int64_t median = Pick(values, 0.5);
      m_.typical_.emplace_back(name, values.size() < kMinSamples
                                         ? std::min(median, kMaxLatencyNs)
                                         : median);
    }
    int64_t usual = last.valid() ? m_.Typical(last) : 0;
    for (Call& call : m_.calls_) {
      const StringId name = trace_.slices.name[call.slice.value];
      if (name != last) usual = m_.Typical(name);
      last = name;
      call.slow = trace_.Duration(call.slice) > kSlow * usual &&
                  CallKindOf(trace_.Text(name)) != CallKind::kCopy;
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
      if (trace_.Name(s) == "Stream Wait Event") {
        stream_waits_.push_back(*sync);
      } else if (sync->correlation != kNoInt) {
        call_syncs_[sync->correlation] = *sync;
      }
    }
  }

  // Per stream: when its work was launched, and what ends last of all work
  // launched up to each.
  void LaunchOrder() {
    order_.resize(trace_.streams.size());
    ParallelFor(context_.settings.threads, trace_.streams.size(),
                [&](size_t i) {
                  Order& order = order_[i];
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

  void Waits() {
    // Names decide; each is looked at once.
    std::vector<int8_t> kinds(trace_.strings.size(), -1);
    for (uint32_t t = 0; t < m_.threads_.size(); ++t) {
      for (const SliceId s : m_.threads_[t].events) {
        if (trace_.KindOf(s) == Kind::kOp) continue;
        int8_t& kind = kinds[trace_.slices.name[s.value].value];
        if (kind < 0) kind = static_cast<int8_t>(CallKindOf(trace_.Name(s)));
        if (kind != static_cast<int8_t>(CallKind::kOther))
          AddWait(s, t, static_cast<CallKind>(kind));
      }
    }
  }

  void AddWait(SliceId s, uint32_t thread, CallKind kind) {
    Wait wait;
    wait.slice = s;
    wait.thread = thread;
    wait.begin = wait.end = static_cast<uint32_t>(m_.sources_.size());
    if (kind == CallKind::kCopy) {
      const uint32_t c = m_.CallOf(s);
      if (c == kNone) return;
      SliceId last;
      for (const SliceId k : m_.Work(m_.calls_[c])) {
        if (End(k) > End(s)) return;
        if (!last.valid() || End(k) > End(last)) last = k;
      }
      if (End(last) <= Start(s)) return;
      wait.target = last;
      wait.copy = true;
      Push(wait);
      return;
    }
    bool recorded = kind == CallKind::kDeviceSync || kind == CallKind::kFree;
    std::optional<int64_t> only;
    const trace::ApiArgs* api = trace_.Api(s);
    if (!recorded && api != nullptr && api->correlation != kNoInt) {
      const auto it = call_syncs_.find(api->correlation);
      if (it != call_syncs_.end() && it->second.stream >= 0 &&
          it->second.stream < int64_t{1} << 31) {
        only = it->second.stream;
        recorded = true;
      }
    }
    std::vector<SliceId> ok, done;
    int64_t early = 0;
    for (size_t i = 0; i < order_.size(); ++i) {
      if (only && trace_.streams[i].stream != *only) continue;
      if (stream_process_[i].valid() && stream_process_[i] != ProcessOf(s))
        continue;
      const Order& order = order_[i];
      const auto at = std::lower_bound(order.launched.begin(),
                                       order.launched.end(), Start(s)) -
                      order.launched.begin();
      if (at == 0) continue;
      const SliceId last = order.last[static_cast<size_t>(at) - 1];
      if (End(last) <= Start(s)) {
        done.push_back(last);
      } else if (End(last) <= End(s)) {
        ok.push_back(last);
      } else if (recorded) {
        Count("sync_target_after_return");
        early = std::max(early, End(last) - End(s));
      }
    }
    // Of several devices it is not known which one was waited for, and an event
    // may lie before the last work.
    if (recorded && m_.devices_.size() == 1 &&
        (kind == CallKind::kDeviceSync || kind == CallKind::kStreamSync)) {
      ++m_.returns_.calls;
      if (early > 0) m_.returns_.early_ns.push_back(early);
    }
    if (kind == CallKind::kFree) done.clear();
    for (const SliceId k : ok) {
      if (!wait.target.valid() ||
          std::pair(End(k), trace_.Uid(k)) >
              std::pair(End(wait.target), trace_.Uid(wait.target)))
        wait.target = k;
    }
    if (wait.target.valid()) {
      wait.inferred = !recorded;
      Count(recorded ? "sync_edges_recorded" : "sync_edges_inferred");
    } else if (kind != CallKind::kFree) {
      Count("sync_calls_without_wait");
    }
    if (recorded || order_.size() == 1) {
      m_.sources_.insert(m_.sources_.end(), ok.begin(), ok.end());
      m_.sources_.insert(m_.sources_.end(), done.begin(), done.end());
      wait.end = static_cast<uint32_t>(m_.sources_.size());
    }
    if (wait.inferred && !m_.options_.infer && order_.size() > 1) return;
    if (wait.target.valid() || wait.end > wait.begin) Push(wait);
  }

  void Push(const Wait& wait) {
    m_.threads_[wait.thread].waits.push_back(
        static_cast<uint32_t>(m_.waits_.size()));
    m_.waits_.push_back(wait);
  }

  // Waits of one stream for an event of another.
  void Dependencies() {
    if (stream_waits_.empty()) return;
    // The calls that the records name.
    absl::flat_hash_map<int64_t, SliceId> calls;
    for (const trace::SyncRecord& wait : stream_waits_) {
      calls.try_emplace(wait.correlation, SliceId());
      calls.try_emplace(wait.source_record, SliceId());
    }
    for (const Thread& thread : m_.threads_) {
      for (const SliceId s : thread.events) {
        const trace::ApiArgs* api = trace_.Api(s);
        if (api == nullptr || api->correlation <= 0) continue;
        const auto it = calls.find(api->correlation);
        if (it != calls.end() && !it->second.valid()) it->second = s;
      }
    }
    std::map<std::pair<int64_t, int64_t>, size_t> streams;
    for (size_t i = 0; i < trace_.streams.size(); ++i)
      streams.try_emplace({trace_.streams[i].device, trace_.streams[i].stream},
                          i);
    for (const trace::SyncRecord& wait : stream_waits_) {
      const auto from = streams.find({wait.device, wait.source_stream});
      const auto to = streams.find({wait.device, wait.stream});
      const SliceId call = calls[wait.correlation];
      const SliceId record = calls[wait.source_record];
      if (from == streams.end() || to == streams.end() || from == to ||
          !call.valid() || !record.valid()) {
        Count("waits_unresolved");
        continue;
      }
      const SliceId a = LaunchedBefore(from->second, Start(record));
      const SliceId b = LaunchedAfter(to->second, Start(call));
      if (!a.valid() || !b.valid()) {
        Count("waits_unresolved");
      } else if (End(a) <= Start(b)) {
        m_.dependencies_.emplace_back(b, a);
        Count("waits_recorded");
      } else {
        Count("waits_violated");
      }
    }
    std::stable_sort(
        m_.dependencies_.begin(), m_.dependencies_.end(),
        [](const auto& x, const auto& y) { return x.first < y.first; });
  }

  // The last linked work of a stream that was launched before a time, and the
  // first that was launched after one.
  SliceId LaunchedBefore(size_t stream, int64_t time) const {
    const Order& order = order_[stream];
    auto i =
        std::lower_bound(order.launched.begin(), order.launched.end(), time) -
        order.launched.begin();
    while (--i >= 0) {
      const SliceId s = order.work[static_cast<size_t>(i)];
      if (m_.call(s) != kNone) return s;
    }
    return {};
  }
  SliceId LaunchedAfter(size_t stream, int64_t time) const {
    const Order& order = order_[stream];
    auto i = static_cast<size_t>(
        std::upper_bound(order.launched.begin(), order.launched.end(), time) -
        order.launched.begin());
    for (; i < order.work.size(); ++i) {
      if (m_.call(order.work[i]) != kNone) return order.work[i];
    }
    return {};
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
        found[i].active = found[i].active.Minus(m_.any_);
      m_.threads_[of[i]].os = std::move(found[i]);
    }
  }

  void Covers() {
    for (const Wait& wait : m_.waits_) {
      if (!wait.target.valid()) continue;
      blocked_.resize(m_.threads_.size());
      copies_.resize(m_.threads_.size());
      const Interval i{Start(wait.slice), End(wait.slice)};
      blocked_[wait.thread].push_back(i);
      if (wait.copy) copies_[wait.thread].push_back(i);
    }
    for (size_t t = 0; t < blocked_.size(); ++t) {
      m_.threads_[t].blocked = Cover(std::move(blocked_[t]));
      m_.threads_[t].copies = Cover(std::move(copies_[t]));
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
    std::vector<std::vector<Interval>> found(ranges.size());
    ParallelFor(threads, ranges.size(), [&](size_t r) {
      const Range& range = ranges[r];
      std::vector<Interval>& own = found[r];
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
    size_t count = 0;
    for (const auto& own : found) count += own.size();
    std::vector<Interval> all;
    all.reserve(count);
    for (auto& own : found) {
      all.insert(all.end(), own.begin(), own.end());
      own = {};
    }
    RunSort(all, threads, [](const Interval& a, const Interval& b) {
      return a.start_ns < b.start_ns;
    });
    m_.any_ = Cover(std::move(all));
  }

  struct Order {
    std::vector<SliceId> work;      // in the order of launching
    std::vector<int64_t> launched;  // their launch times
    std::vector<SliceId> last;      // of all up to here, what ends last
  };

  const Context& context_;
  const Trace& trace_;
  HostModel& m_;
  std::mutex counting_;
  uint32_t slices_ = 0;              // without captured ones
  std::vector<uint32_t> thread_of_;  // by track
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> api_of_;
  uint32_t last_api_ = 0;
  std::vector<trace::SyncRecord> stream_waits_;
  absl::flat_hash_map<int64_t, trace::SyncRecord> call_syncs_;
  std::vector<Order> order_;
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

int64_t HostModel::Typical(StringId name) const {
  const auto it = std::lower_bound(
      typical_.begin(), typical_.end(), name,
      [](const auto& entry, StringId id) { return entry.first < id; });
  return it != typical_.end() && it->first == name ? it->second : 0;
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
    return trace().End(ends.work[k]) <= start;
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
