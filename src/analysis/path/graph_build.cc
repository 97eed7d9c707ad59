// SPDX-License-Identifier: Apache-2.0
//
// Building the graph: points of the host, threads that wake each other, device
// work, what calls waited for, waits between streams that are recorded, called
// for or inferred, and what comes from outside. Linear after sorting.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <queue>

#include "analysis/common/collective.h"
#include "analysis/host/work_stretch.h"
#include "analysis/path/graph.h"
#include "analysis/path/outside.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/stop.h"

namespace lamina::analysis::path {

using host::Call;
using host::Pick;
using host::Reading;
using host::Wait;
using host::WaitHow;
using host::WorkKind;
using trace::kNoInt;

namespace {

constexpr uint8_t kBestLow = host::kBest | host::kLow;
constexpr uint8_t kHighDelay = host::kHigh | host::kDelay;

// A thread that pauses longer may have been waiting for another, one that
// stopped at most this long before.
constexpr int64_t kAsleepNs = 20000;
constexpr int64_t kHandoffNs = 100000;
// Behind a wait that a frame or range stands for nothing is recorded of the
// host: a launch of another thread may follow so much later.
constexpr int64_t kAfterWaitNs = 10'000'000;
// What a call takes for itself that waits: without samples, of a copy, of a
// query that is repeated.
constexpr int64_t kOwnNs = 1500, kOwnCopyNs = 3000, kOwnPollNs = 1000;
// How long a call takes to return after what it waited for: longer is no
// latency.
constexpr int64_t kMostReturnNs = 20000, kReturnNs = 3000;
// Launch latency from the start of a call without samples.
constexpr int64_t kFloorNs = 6000;
// From its end; and the most that a sample counts.
constexpr int64_t kLatencyNs = 2000, kMostLatencyNs = 100000;
// A gap below this is the spacing of work that follows work; without samples.
constexpr int64_t kSpacingNs = 5000, kUsualSpacingNs = 1500;
// Launches that return when a place in the queue becomes free.
constexpr int64_t kMostQueueNs = 2000;
// On a device with more other streams a stream may wait for so many next to it
// where nothing is recorded of waits.
constexpr size_t kMostStreams = 64;
// A graph with more nodes is ordered by time.
constexpr size_t kMostGraphNodes = 600;
constexpr int64_t kGraphTouchNs = 50, kGraphProofNs = 1500;
// Frames: one that lasts longer than this, and that much longer than a quick
// one of its thread, waited.
constexpr int64_t kFrameNs = 200000, kFrameTimes = 4, kFrameQuickNs = 1000000;
// Unexplained starts: from outside in `low` above the first, in `best` above
// the second, or the third right after their launch.
constexpr int64_t kPinNs = 20000, kQuietNs = 50000, kQuietLaunchNs = 1000000;
// Least time of a collective, and bytes for each nanosecond of its link.
constexpr int64_t kCollectiveNs = 5000;
constexpr double kLinkBytesPerNs = 450;

EdgeKind KindOf(WorkKind kind) {
  switch (kind) {
    case WorkKind::kComm:
      return EdgeKind::kComm;
    case WorkKind::kCopy:
      return EdgeKind::kCopy;
    case WorkKind::kFill:
      return EdgeKind::kFill;
    default:
      return EdgeKind::kCompute;
  }
}

// P(X >= hits) of a binomial distribution.
double Tail(int64_t n, int64_t hits, double p) {
  if (p >= 1 || hits <= 0) return 1;
  if (n >= 1000) {
    return static_cast<double>(hits) > 2 * static_cast<double>(n) * p ? 0 : 1;
  }
  const auto log_of = [](int64_t k) {
    return std::lgamma(static_cast<double>(k) + 1);
  };
  double sum = 0;
  for (int64_t k = hits; k <= n; ++k) {
    sum += std::exp(log_of(n) - log_of(k) - log_of(n - k) +
                    static_cast<double>(k) * std::log(p) +
                    static_cast<double>(n - k) * std::log1p(-p));
  }
  return sum;
}

}  // namespace

class GraphBuilder {
 public:
  GraphBuilder(const HostModel& model, Graph& graph)
      : m_(model),
        trace_(model.trace()),
        g_(graph),
        threads_(model.context().settings.threads) {}

  void Run() {
    size_t host = 0;
    for (const host::Thread& thread : m_.threads())
      host += thread.events.size();
    const size_t device = trace_.device_slices().size();
    LAMINA_CHECK(2 * (trace_.slices.size() + host + device) < kChain);
    start_.assign(m_.calls().size(), kNoNode);
    end_.assign(m_.calls().size(), kNoNode);
    waits_.assign(m_.waits().size(), kNoNode);
    fed_.assign(m_.calls().size(), false);
    ParallelFor(threads_, 3, [&](size_t i) {
      if (i == 0) Busy();
      if (i == 1) FindThreads();
      if (i == 2) FindFloors();
    });
    OwnTimes();
    CutThreads();
    const uint32_t hosts = NumberNodes();
    const size_t nodes = hosts + 2 * device;
    g_.times_.AppendUninitialized(nodes);
    g_.chain_.AppendUninitialized(nodes);
    g_.owner_.AppendUninitialized(nodes);
    LookForStop();
    Threads();
    LookForStop();
    Batons();
    std::vector<Stretch>().swap(stretches_);
    tops_.Reset();
    g_.first_device_ = hosts;
    g_.parts_.push_back(
        {&m_, 0, hosts, hosts, static_cast<uint32_t>(nodes) - hosts, 0, 0});
    GraphOrders();
    Device();
    LookForStop();
    Stretches();
    Queues();
    Syncs();
    WaitCalls();
    Infer();
    if (against_time_ > 0) g_.counts_["edges_against_time"] = against_time_;
    // Of no use any more while the graph reaches its size.
    for (auto* list : {&start_, &end_, &waits_, &place_})
      std::vector<uint32_t>().swap(*list);
    best_.Reset();
    follows_ = {};
    special_.clear();
    LookForStop();
    g_.edges_.shrink_to_fit();
    g_.MakeLists();
    Lags();
    Pins();
    g_.FindDoubt();
    g_.Finish();
    g_.FindEnds();
  }

 private:
  struct Top {
    int64_t start = 0;
    int64_t end = 0;
    uint32_t node = 0;
    uint32_t end_node = 0;
  };

  // A thread whose events are not those of the model: queries that are one
  // wait, frames in which it waits for others.
  struct Special {
    std::vector<SliceId> events;
    absl::flat_hash_map<SliceId, int64_t> ends;  // where they differ
    absl::flat_hash_map<SliceId, bool> frames;   // whether it waited
  };

  // Events of a thread behind which all that were open have ended: they make
  // nodes of their own, whatever was before.
  struct Stretch {
    uint32_t thread = 0;
    size_t begin = 0, end = 0;  // of the events of the thread
    uint32_t node = 0;
    PodVector<Top> tops;  // stand in tops_
    std::vector<std::pair<uint32_t, int64_t>> call_work;
    std::vector<Edge> edges;
    std::vector<Graph::Pin> pins;
    std::vector<uint32_t> frames;
    int64_t clamped = 0;
  };

  // --- what is known before ---

  void Busy() {
    g_.busy_.emplace_back();
    for (const host::DeviceFacts& device : m_.devices()) {
      IntervalSet busy;
      for (const SliceId s : device.work)
        busy.AppendSorted({trace_.Start(s), trace_.End(s)});
      g_.busy_[0].emplace_back(std::move(busy));
    }
  }

  bool Works(int64_t from, int64_t to) const {
    return std::any_of(
        g_.busy_[0].begin(), g_.busy_[0].end(),
        [&](const host::Cover& busy) { return busy.Over(from, to) > 0; });
  }

  std::span<const SliceId> EventsOf(uint32_t thread) const {
    return special_[thread] ? special_[thread]->events
                            : m_.threads()[thread].events;
  }
  int64_t EndOf(uint32_t thread, SliceId s) const {
    if (special_[thread]) {
      const auto it = special_[thread]->ends.find(s);
      if (it != special_[thread]->ends.end()) return it->second;
    }
    return trace_.End(s);
  }

  // Repeated queries become one event, frames that wait for others join.
  void FindThreads() {
    special_.resize(m_.threads().size());
    const auto special = [&](uint32_t thread) -> Special& {
      if (!special_[thread]) {
        special_[thread] = std::make_unique<Special>();
        special_[thread]->events = m_.threads()[thread].events;
      }
      return *special_[thread];
    };
    for (uint32_t t = 0; t < m_.threads().size(); ++t) {
      std::vector<std::pair<SliceId, SliceId>> polls;
      for (const uint32_t w : m_.threads()[t].waits) {
        const Wait& wait = m_.waits()[w];
        if (wait.how == WaitHow::kPoll)
          polls.emplace_back(wait.slice, wait.last);
      }
      if (polls.empty()) continue;
      Special& own = special(t);
      size_t poll = 0;
      bool within = false;
      const auto gone = [&](SliceId s) {
        if (within) {
          if (trace_.KindOf(s) == trace::Kind::kOp) return false;
          within = s != polls[poll].second;
          poll += within ? 0 : 1;
          return true;
        }
        if (poll < polls.size() && s == polls[poll].first) {
          own.ends[s] = trace_.End(polls[poll].second);
          within = true;
        }
        return false;
      };
      own.events.erase(
          std::remove_if(own.events.begin(), own.events.end(), gone),
          own.events.end());
    }
    std::vector<std::vector<OutsideFrame>> frames = OutsideFrames(m_);
    for (uint32_t t = 0; t < frames.size(); ++t) {
      if (frames[t].empty()) continue;
      Special& own = special(t);
      std::vector<SliceId> ops;
      for (const OutsideFrame& frame : frames[t]) {
        if (frame.op) ops.push_back(frame.slice);
      }
      std::erase_if(frames[t], [](const OutsideFrame& f) { return f.op; });
      AddFrames(own, frames[t]);
      own.events.insert(own.events.end(), ops.begin(), ops.end());
    }
    for (uint32_t t = 0; t < m_.threads().size(); ++t) {
      if (!special_[t]) continue;
      std::stable_sort(special_[t]->events.begin(), special_[t]->events.end(),
                       [&](SliceId a, SliceId b) {
                         const int64_t x = trace_.Start(a), y = trace_.Start(b);
                         return x != y ? x < y : EndOf(t, a) > EndOf(t, b);
                       });
    }
  }

  // `frames` by start; those that overlap are one.
  void AddFrames(Special& own, const std::vector<OutsideFrame>& frames) {
    std::vector<int64_t> lengths;
    for (const OutsideFrame& frame : frames)
      lengths.push_back(trace_.Duration(frame.slice));
    const int64_t quick = Pick(lengths, 0.1);
    struct Joined {
      SliceId slice;
      int64_t start = 0, end = 0;
      bool known = false;  // it only waits
    };
    std::vector<Joined> joined;
    for (const OutsideFrame& frame : frames) {
      const int64_t start = trace_.Start(frame.slice);
      const int64_t end = trace_.End(frame.slice);
      if (joined.empty() || start > joined.back().end)
        joined.push_back({frame.slice, start, end, false});
      joined.back().end = std::max(joined.back().end, end);
      joined.back().known |= frame.waits;
    }
    const auto works_inside = [&](const Joined& frame) {
      const auto it = std::partition_point(
          own.events.begin(), own.events.end(),
          [&](SliceId s) { return trace_.Start(s) < frame.start; });
      return it != own.events.end() && trace_.Start(*it) < frame.end;
    };
    // Work inside of one: the loader works in this thread.
    const bool works = std::any_of(
        joined.begin(), joined.end(),
        [&](const Joined& f) { return !f.known && works_inside(f); });
    std::vector<SliceId> added;
    for (const Joined& frame : joined) {
      if (works && !frame.known) continue;
      const int64_t length = frame.end - frame.start;
      const bool waited =
          frame.known && length > kFrameNs &&
          (length > kFrameTimes * quick || quick > kFrameQuickNs);
      own.ends[frame.slice] = frame.end;
      own.frames[frame.slice] = waited;
      added.push_back(frame.slice);
    }
    own.events.insert(own.events.end(), added.begin(), added.end());
  }

  // What calls take for themselves that wait: where no device worked.
  void OwnTimes() {
    absl::flat_hash_map<StringId, std::vector<int64_t>> free;
    for (const Wait& wait : m_.waits()) {
      const auto how = wait.how;
      if (how == WaitHow::kCopy || how == WaitHow::kStaged)
        fed_[m_.CallOf(wait.slice)] = true;
      if (how != WaitHow::kDevice && how != WaitHow::kStream &&
          how != WaitHow::kEvent)
        continue;
      const int64_t start = trace_.Start(wait.slice), end = m_.EndOf(wait);
      if (!Works(start, end))
        free[trace_.slices.name[wait.slice.value]].push_back(end - start);
    }
    for (const auto& [name, times] : free) own_[name] = Pick(times, 0.5);
  }

  int64_t OwnOf(const Wait& wait) const {
    switch (wait.how) {
      case WaitHow::kCopy:
      case WaitHow::kStaged:
        return kOwnCopyNs;
      case WaitHow::kPoll:
        return kOwnPollNs;
      default: {
        const auto it = own_.find(trace_.slices.name[wait.slice.value]);
        return it == own_.end() || it->second == 0 ? kOwnNs : it->second;
      }
    }
  }

  // Launch latency after the end of a call, by its name and whether it launches
  // many, and the spacing of a stream, between launches and within one.
  void FindFloors() {
    latency_.clear();
    spacing_.assign(trace_.streams.size(), {kUsualSpacingNs, kUsualSpacingNs});
    absl::flat_hash_map<uint64_t, std::vector<int64_t>> latencies;
    uint64_t known = 0;
    std::vector<int64_t>* of_known = nullptr;
    StringId name_known;
    int64_t usual = 0;
    for (uint32_t i = 0; i < trace_.streams.size(); ++i) {
      std::array<std::vector<int64_t>, 2> gaps;
      int64_t reached = kNoInt;
      uint32_t before = host::kNone;
      for (const SliceId s : trace_.streams[i].slices) {
        const uint32_t c = m_.call(s);
        if (reached != kNoInt && c != host::kNone) {
          const Call& call = m_.calls()[c];
          const int64_t start = trace_.Start(s);
          const bool same = before == c;
          if (reached <= trace_.Start(call.slice) &&
              trace_.Start(call.slice) <= start) {
            const StringId name = trace_.slices.name[call.slice.value];
            if (name != name_known || !name_known.valid()) {
              name_known = name;
              usual = m_.Usual(name);
            }
            if (trace_.Duration(call.slice) <= 4 * usual) {
              const uint64_t key = LatencyKey(call);
              if (of_known == nullptr || key != known) {
                known = key;
                of_known = &latencies[key];
              }
              of_known->push_back(start - trace_.End(call.slice));
            }
          }
          const int64_t gap = start - reached;
          if (gap >= 0 && gap < kSpacingNs &&
              (same || trace_.End(call.slice) + kFloorNs < reached))
            gaps[same ? 1 : 0].push_back(gap);
        }
        reached = std::max(reached, trace_.End(s));
        before = c;
      }
      for (size_t same = 0; same < 2; ++same) {
        constexpr size_t kLeast = 4;
        if (gaps[same].size() >= kLeast)
          spacing_[i][same] = Pick(gaps[same], 0.5);
      }
    }
    for (const auto& [key, values] : latencies) {
      constexpr size_t kLeast = 3;
      if (values.size() >= kLeast)
        latency_[key] = std::min(kMostLatencyNs, Pick(values, 0.10));
    }
  }
  uint64_t LatencyKey(const Call& call) const {
    return 2 * uint64_t{trace_.slices.name[call.slice.value].value} +
           (call.end - call.begin > 1 ? 1 : 0);
  }

  // --- host ---
  // Makes the nodes of a stretch.
  class Walk {
   public:
    Walk(GraphBuilder& builder, Stretch& stretch)
        : b_(builder),
          m_(builder.m_),
          trace_(builder.trace_),
          stretch_(stretch),
          thread_(builder.m_.threads()[stretch.thread]),
          special_(builder.special_[stretch.thread].get()),
          node_(stretch.node),
          first_of_thread_(stretch.begin == 0) {}

    // How many nodes there are.
    uint32_t Run() {
      const auto events = b_.EventsOf(stretch_.thread);
      const auto& waits = thread_.waits;
      // Starts of other stretches differ.
      size_t wait = static_cast<size_t>(
          std::partition_point(waits.begin(), waits.end(),
                               [&](uint32_t w) {
                                 return trace_.Start(m_.waits()[w].slice) <
                                        trace_.Start(events[stretch_.begin]);
                               }) -
          waits.begin());
      for (size_t i = stretch_.begin; i < stretch_.end; ++i) {
        const SliceId s = events[i];
        const int64_t start = trace_.Start(s);
        const int64_t end = b_.EndOf(stretch_.thread, s);
        // One that outlasts the open one by more than it lies in it comes
        // after it: clocks of ops and calls differ.
        while (!open_.empty() &&
               (open_.back().end <= start ||
                open_.back().end - start < end - open_.back().end)) {
          if (open_.back().end > start) ++stretch_.clamped;
          CloseOne(start);
        }
        Open o;
        o.slice = s;
        o.end = end;
        if (!open_.empty() && open_.back().end < o.end) {
          ++stretch_.clamped;
          o.end = open_.back().end;
        }
        if (special_ != nullptr) {
          const auto frame = special_->frames.find(s);
          if (frame != special_->frames.end())
            o.frame = frame->second ? Frame::kWaited : Frame::kQuick;
        }
        const uint32_t node = Point(start, false);
        if (o.frame == Frame::kNone) {
          o.call = m_.CallOf(s);
          if (o.call != host::kNone) {
            b_.start_[o.call] = node;
            const Call& call = m_.calls()[o.call];
            if (call.full) {
              o.own_ns = m_.Usual(trace_.slices.name[call.slice.value]);
            }
          }
          while (wait < waits.size() &&
                 trace_.Start(m_.waits()[waits[wait]].slice) < start)
            ++wait;
          for (size_t w = wait;
               w < waits.size() &&
               trace_.Start(m_.waits()[waits[w]].slice) == start;
               ++w) {
            if (m_.waits()[waits[w]].slice != s) continue;
            o.wait = waits[w];
            o.own_ns = b_.OwnOf(m_.waits()[o.wait]);
          }
        } else {
          stretch_.frames.push_back(node);
        }
        if (open_.empty()) {
          top_ = Top();
          top_.start = start;
          top_.node = node;
        }
        open_.push_back(o);
      }
      while (!open_.empty()) CloseOne(open_.back().end);
      return node_ - stretch_.node;
    }

   private:
    enum class Frame : uint8_t { kNone, kQuick, kWaited };
    struct Open {
      SliceId slice;
      int64_t end = 0;
      uint32_t call = host::kNone;
      uint32_t wait = host::kNone;
      int64_t own_ns = -1;  // of a call that waits
      Frame frame = Frame::kNone;
    };

    void CloseOne(int64_t at) {
      const Open o = open_.back();
      const int64_t end = std::min(o.end, at);
      const uint32_t node = Point(end, true);
      if (o.call != host::kNone) b_.end_[o.call] = node;
      if (o.wait != host::kNone) b_.waits_[o.wait] = node;
      if (o.frame != Frame::kNone) {
        stretch_.frames.push_back(node);
        stretch_.pins.push_back(
            {node, o.frame == Frame::kWaited ? kBestLow : uint8_t{host::kLow}});
      }
      open_.pop_back();
      if (open_.empty() && thread_.takes_part) {
        top_.end = end;
        top_.end_node = node;
        stretch_.tops.push_back(top_);
      }
    }

    // A point of the thread behind the one before it; `closes`: the end of the
    // innermost open event.
    uint32_t Point(int64_t time, bool closes) {
      const uint32_t node = node_++;
      EdgeKind kind = EdgeKind::kHost;
      SliceId owner;
      const int64_t dt = time - last_ns_;
      if (first_of_thread_) {
        kind = EdgeKind::kNone;
      } else if (open_.empty()) {
        kind = EdgeKind::kHostGap;
      } else {
        const Open& own = open_.back();
        owner = own.slice;
        if (own.frame == Frame::kWaited && closes) {
          kind = EdgeKind::kOutsideWait;
          Edge edge;
          edge.from = node - 1;
          edge.to = node;
          edge.work_ns = std::min(dt, kMostWorkNs);
          edge.kind = EdgeKind::kOutside;
          edge.readings = kHighDelay & host::kAllReadings;
          edge.owner = owner;
          stretch_.edges.push_back(edge);
        } else if (own.frame != Frame::kNone) {
          kind = EdgeKind::kOutside;
        } else if (own.own_ns >= 0) {
          kind = EdgeKind::kCall;
          if (dt > own.own_ns)
            stretch_.call_work.emplace_back(node, own.own_ns);
        }
      }
      b_.SetNode(node, time, kind, owner);
      first_of_thread_ = false;
      last_ns_ = time;
      return node;
    }

    GraphBuilder& b_;
    const HostModel& m_;
    const Trace& trace_;
    Stretch& stretch_;
    const host::Thread& thread_;
    const Special* const special_;
    uint32_t node_;
    int64_t last_ns_ = 0;  // time of the last node
    bool first_of_thread_;
    std::vector<Open> open_;
    Top top_;
  };

  void SetNode(uint32_t node, int64_t time, EdgeKind kind, SliceId owner) {
    g_.times_[node] = time;
    g_.chain_[node] = kind;
    g_.owner_[node] = owner;
  }

  void CutThreads() {
    constexpr size_t kGrain = size_t{1} << 14;
    struct Range {
      uint32_t thread;
      size_t begin, end;
      int64_t reached = kNoInt;  // latest end in it
      size_t cut = 0;  // first event behind all before; `end`: there is none
    };
    std::vector<Range> ranges;
    for (uint32_t t = 0; t < m_.threads().size(); ++t) {
      const size_t events = EventsOf(t).size();
      for (size_t begin = 0; begin < events; begin += kGrain)
        ranges.push_back({t, begin, std::min(events, begin + kGrain)});
    }
    ParallelFor(threads_, ranges.size(), [&](size_t r) {
      Range& range = ranges[r];
      const auto events = EventsOf(range.thread);
      for (size_t i = range.begin; i < range.end; ++i)
        range.reached = std::max(range.reached, EndOf(range.thread, events[i]));
    });
    std::vector<int64_t> before(ranges.size(), kNoInt);
    for (size_t r = 1; r < ranges.size(); ++r) {
      if (ranges[r].thread == ranges[r - 1].thread)
        before[r] = std::max(before[r - 1], ranges[r - 1].reached);
    }
    ParallelFor(threads_, ranges.size(), [&](size_t r) {
      Range& range = ranges[r];
      const auto events = EventsOf(range.thread);
      int64_t reached = before[r];
      range.cut = range.begin;
      while (range.cut < range.end && range.begin > 0 &&
             trace_.Start(events[range.cut]) <= reached) {
        reached = std::max(reached, EndOf(range.thread, events[range.cut]));
        ++range.cut;
      }
    });
    for (const Range& range : ranges) {
      if (range.cut < range.end) {
        if (range.begin > 0) stretches_.back().end = range.cut;
        stretches_.push_back({});
        stretches_.back().thread = range.thread;
        stretches_.back().begin = range.cut;
      }
      stretches_.back().end = range.end;
    }
  }

  // Gives stretches their numbers of nodes, one for each end of an event;
  // returns how many there are.
  uint32_t NumberNodes() {
    uint32_t node = 0;
    uint32_t stretch = 0;
    for (uint32_t t = 0; t < m_.threads().size(); ++t) {
      g_.thread_begin_.push_back(node);
      for (; stretch < stretches_.size() && stretches_[stretch].thread == t;
           ++stretch) {
        stretches_[stretch].node = node;
        node += 2 * static_cast<uint32_t>(stretches_[stretch].end -
                                          stretches_[stretch].begin);
      }
    }
    g_.thread_begin_.push_back(node);
    return node;
  }

  void Threads() {
    size_t events = 0;
    for (const Stretch& stretch : stretches_)
      events += stretch.end - stretch.begin;
    Top* room = tops_.AppendUninitialized(events);
    for (Stretch& stretch : stretches_) {
      const size_t most = stretch.end - stretch.begin;
      stretch.tops = PodVector<Top>::Borrow(room, most);
      stretch.tops.clear();
      room += most;
    }
    ParallelFor(threads_, stretches_.size(), [&](size_t i) {
      Stretch& stretch = stretches_[i];
      const uint32_t nodes = Walk(*this, stretch).Run();
      LAMINA_CHECK(nodes == 2 * (stretch.end - stretch.begin));
    });
    int64_t clamped = 0;
    for (const Stretch& stretch : stretches_) {
      clamped += stretch.clamped;
      for (const auto& [node, work] : stretch.call_work)
        g_.call_work_[node] = work;
      for (const Edge& edge : stretch.edges) g_.edges_.push_back(edge);
      pins_.insert(pins_.end(), stretch.pins.begin(), stretch.pins.end());
      g_.frames_.insert(g_.frames_.end(), stretch.frames.begin(),
                        stretch.frames.end());
    }
    std::sort(g_.frames_.begin(), g_.frames_.end());
    if (clamped > 0) g_.counts_["host_bleed_clamped"] = clamped;
  }

  // Whether the last event before a node is a frame or range, which stands for
  // a wait of the device.
  bool EndsFrame(uint32_t node) const {
    const SliceId s = g_.owner_[node];
    return g_.chain_[node] == EdgeKind::kCall && s.valid() &&
           !trace::IsApiCall(trace_.KindOf(s));
  }

  // A thread that resumes after others went idle was woken by the last of
  // them.
  void Batons() {
    // The next top of each thread, the earliest first.
    struct Head {
      int64_t start;
      uint32_t node;
      size_t stretch;
      size_t top;
      bool operator>(const Head& other) const {
        return start != other.start ? start > other.start : node > other.node;
      }
    };
    std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
    const auto push = [&](size_t stretch, size_t top) {
      const uint32_t thread = stretches_[stretch].thread;
      while (top == stretches_[stretch].tops.size()) {
        top = 0;
        if (++stretch == stretches_.size() ||
            stretches_[stretch].thread != thread)
          return;
      }
      const Top& next = stretches_[stretch].tops[top];
      heads.push({next.start, next.node, stretch, top});
    };
    for (size_t i = 0; i < stretches_.size(); ++i) {
      if (i == 0 || stretches_[i].thread != stretches_[i - 1].thread)
        push(i, 0);
    }
    // Nobody is woken where one thread works alone.
    if (heads.size() < 2) return;
    struct Stop {
      int64_t time;
      uint32_t node;
      uint32_t thread;
    };
    const auto later = [](const Stop& a, const Stop& b) {
      return a.time != b.time ? a.time > b.time : a.node > b.node;
    };
    std::priority_queue<Stop, std::vector<Stop>, decltype(later)> ends(later);
    // A list of the idle threads, by the time they became idle; its head and
    // end are at the place behind all threads.
    struct Idle {
      int64_t time = 0;
      uint32_t node = 0;
      uint32_t before = kNoNode, behind = kNoNode;  // kNoNode: not idle
    };
    const auto ring = static_cast<uint32_t>(m_.threads().size());
    std::vector<Idle> idle(ring + 1);
    idle[ring].before = idle[ring].behind = ring;
    const auto leave = [&](uint32_t thread) {
      Idle& own = idle[thread];
      if (own.before == kNoNode) return;
      idle[own.before].behind = own.behind;
      idle[own.behind].before = own.before;
      own.before = own.behind = kNoNode;
    };
    while (!heads.empty()) {
      const Head head = heads.top();
      heads.pop();
      const Top top = stretches_[head.stretch].tops[head.top];
      const uint32_t thread = stretches_[head.stretch].thread;
      push(head.stretch, head.top + 1);
      while (!ends.empty() && ends.top().time <= top.start) {
        const Stop stop = ends.top();
        ends.pop();
        leave(stop.thread);
        const uint32_t last = idle[ring].before;
        idle[stop.thread] = {stop.time, stop.node, last, ring};
        idle[last].behind = idle[ring].before = stop.thread;
      }
      const bool was_idle = idle[thread].before != kNoNode;
      const int64_t mine = was_idle ? idle[thread].time : 0;
      leave(thread);
      const uint32_t last = idle[ring].before;
      const int64_t later_by = last == ring ? 0 : top.start - idle[last].time;
      if (last != ring && (!was_idle || idle[last].time > mine) &&
          (later_by <= kHandoffNs ||
           (later_by <= kAfterWaitNs && EndsFrame(idle[last].node)))) {
        const bool gap = g_.chain_[top.node] == EdgeKind::kHostGap;
        if (!gap || g_.times_[top.node] - g_.times_[top.node - 1] > kAsleepNs) {
          if (gap) g_.chain_[top.node] = EdgeKind::kAsleep;
          const bool at_once = later_by <= kHandoffNs;
          Add(idle[last].node, top.node, later_by,
              at_once ? EdgeKind::kHandoff : EdgeKind::kHostGap, {},
              at_once ? host::kAllReadings : kBestLow, !at_once);
          ++g_.counts_["batons"];
        }
      }
      ends.push({top.end, top.end_node, thread});
    }
  }

  // --- edges ---

  // How much later than its target the source of an edge may be.
  static int64_t Tolerance(EdgeKind kind) {
    switch (kind) {
      case EdgeKind::kOrder:
      case EdgeKind::kOverlap:
      case EdgeKind::kSubmit:
        return kMostWorkNs;
      case EdgeKind::kSync:
      case EdgeKind::kPoll:
        return host::kClockNs;
      case EdgeKind::kLaunch:
      case EdgeKind::kQueue:
      case EdgeKind::kDependency:
      case EdgeKind::kDependencyCall:
      case EdgeKind::kDependencyInferred:
      case EdgeKind::kDependencyPossible:
        return host::kTouchNs;
      default:
        return 0;
    }
  }

  // An edge, its work cut so that the recorded times satisfy it; nothing where
  // it would stand against them.
  template <class Edges>
  bool AddTo(Edges& edges, uint32_t from, uint32_t to, int64_t work,
             EdgeKind kind, SliceId owner,
             uint8_t readings = host::kAllReadings, bool inferred = false) {
    const int64_t dt = g_.times_[to] - g_.times_[from];
    if (-dt > Tolerance(kind)) return false;
    Edge edge;
    edge.from = from;
    edge.to = to;
    edge.work_ns = std::clamp(std::min(work, dt), -kMostWorkNs, kMostWorkNs);
    edge.owner = owner;
    edge.kind = kind;
    edge.readings = readings & host::kAllReadings;
    edge.inferred = inferred;
    edges.push_back(edge);
    return true;
  }
  void Add(uint32_t from, uint32_t to, int64_t work, EdgeKind kind,
           SliceId owner, uint8_t readings = host::kAllReadings,
           bool inferred = false) {
    if (!AddTo(g_.edges_, from, to, work, kind, owner, readings, inferred))
      ++against_time_;
  }

  // --- device ---
  uint32_t RowOf(SliceId s) const {
    return place_[trace_.slices.detail[s.value]];
  }
  uint32_t StartNode(SliceId s) const {
    return g_.first_device_ + 2 * RowOf(s);
  }
  uint32_t EndNode(SliceId s) const { return StartNode(s) + 1; }

  // Whether work follows other work that began before it: it does not overlap,
  // or only because it began its preamble early or by the resolution of clocks.
  bool Sequence(SliceId a, SliceId b) const {
    constexpr int64_t kEarlyNs = 3000;
    const int64_t over = trace_.End(a) - trace_.Start(b);
    const int64_t length = trace_.Duration(a);
    return 2 * over <= length || (over <= kEarlyNs && 10 * over <= 9 * length);
  }

  // What an event in a replay of a graph comes after.
  struct Before {
    SliceId work;
    uint8_t readings = host::kAllReadings;
  };

  // Where nodes of a graph run beside each other, an order holds if all replays
  // keep it.
  void GraphOrders() {
    struct Replays {
      std::vector<std::vector<SliceId>> work;  // each by node
      bool beside = false;
    };
    std::map<std::vector<std::pair<uint32_t, int64_t>>, Replays> groups;
    std::vector<uint32_t> calls;
    for (uint32_t c = 0; c < m_.calls().size(); ++c) {
      const Call& call = m_.calls()[c];
      if (call.end - call.begin > 1 && call.end - call.begin <= kMostGraphNodes)
        calls.push_back(c);
    }
    if (calls.empty()) return;
    const auto beside = [&](std::span<const SliceId> work) {
      for (size_t i = 1; i < work.size(); ++i) {
        if (m_.stream(work[i]) != m_.stream(work[i - 1]) ||
            !Sequence(work[i - 1], work[i]))
          return true;
      }
      return false;
    };
    // Which graphs do at all: most never do.
    const auto shape = [&](std::span<const SliceId> work) {
      std::vector<std::pair<uint32_t, int64_t>> names;
      names.reserve(work.size());
      for (const SliceId s : work) {
        const int64_t id = trace_.Device(s)->graph_node_id;
        names.emplace_back(trace_.slices.name[s.value].value,
                           id == kNoInt ? 0 : id);
      }
      return names;
    };
    const auto by_node = [&](const Call& call) {
      std::vector<SliceId> work(m_.Work(call).begin(), m_.Work(call).end());
      std::stable_sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
        const auto key = [&](SliceId s) {
          const int64_t id = trace_.Device(s)->graph_node_id;
          return std::tuple(id == kNoInt ? 0 : id, trace_.Start(s), s.value);
        };
        return key(a) < key(b);
      });
      return work;
    };
    std::vector<bool> is_beside(calls.size());
    absl::flat_hash_set<uint64_t> sizes;  // of graphs that have such nodes
    for (size_t i = 0; i < calls.size(); ++i) {
      const auto work = m_.Work(m_.calls()[calls[i]]);
      is_beside[i] = beside(work);
      if (is_beside[i]) sizes.insert(work.size());
    }
    for (size_t i = 0; i < calls.size(); ++i) {
      const Call& call = m_.calls()[calls[i]];
      if (!sizes.contains(call.end - call.begin)) continue;
      std::vector<SliceId> work = by_node(call);
      Replays& group = groups[shape(work)];
      group.beside = group.beside || is_beside[i];
      group.work.push_back(std::move(work));
    }
    for (const auto& [names, group] : groups) {
      if (group.beside) GraphOrder(group.work);
    }
  }

  void GraphOrder(const std::vector<std::vector<SliceId>>& replays) {
    const size_t n = replays[0].size(), words = (n + 63) / 64;
    using Bits = std::vector<uint64_t>;
    const auto has = [](const Bits& bits, size_t i) {
      return (bits[i / 64] >> (i % 64) & 1) != 0;
    };
    // Per node those that have ended before it in every replay.
    std::vector<Bits> before(n, Bits(words, ~uint64_t{0}));
    std::vector<uint32_t> by_start(n), by_end(n);
    for (const auto& work : replays) {
      for (uint32_t i = 0; i < n; ++i) by_start[i] = by_end[i] = i;
      std::sort(by_start.begin(), by_start.end(), [&](uint32_t a, uint32_t b) {
        return trace_.Start(work[a]) < trace_.Start(work[b]);
      });
      std::sort(by_end.begin(), by_end.end(), [&](uint32_t a, uint32_t b) {
        return trace_.End(work[a]) < trace_.End(work[b]);
      });
      Bits done(words, 0);
      size_t at = 0;
      for (const uint32_t i : by_start) {
        while (at < n && trace_.End(work[by_end[at]]) <=
                             trace_.Start(work[i]) + kGraphTouchNs) {
          done[by_end[at] / 64] |= uint64_t{1} << (by_end[at] % 64);
          ++at;
        }
        for (size_t w = 0; w < words; ++w) before[i][w] &= done[w];
      }
    }
    const auto& first = replays[0];
    for (uint32_t i = 0; i < n; ++i) by_start[i] = i;
    std::stable_sort(by_start.begin(), by_start.end(),
                     [&](uint32_t a, uint32_t b) {
                       return trace_.Start(first[a]) < trace_.Start(first[b]);
                     });
    for (size_t place = 0; place < n; ++place) {
      const uint32_t i = by_start[place];
      std::vector<uint32_t> kept;
      std::vector<uint32_t> candidates;
      for (size_t p = 0; p < place; ++p) {
        if (has(before[i], by_start[p])) candidates.push_back(by_start[p]);
      }
      std::stable_sort(candidates.begin(), candidates.end(),
                       [&](uint32_t a, uint32_t b) {
                         return trace_.End(first[a]) > trace_.End(first[b]);
                       });
      // Without those that are before another one.
      for (const uint32_t j : candidates) {
        if (std::none_of(kept.begin(), kept.end(),
                         [&](uint32_t m) { return has(before[m], j); }))
          kept.push_back(j);
      }
      if (kept.empty()) continue;
      // Proven where in some replay only its end explains the start.
      std::vector<bool> proven(kept.size(), false);
      std::vector<size_t> last(kept.size(), 0);
      bool any = false;
      for (const auto& work : replays) {
        size_t latest = 0;
        int64_t second = kNoInt;
        for (size_t k = 1; k < kept.size(); ++k) {
          const int64_t end = trace_.End(work[kept[k]]);
          if (end > trace_.End(work[kept[latest]])) {
            second = trace_.End(work[kept[latest]]);
            latest = k;
          } else {
            second = std::max(second, end);
          }
        }
        ++last[latest];
        if (kept.size() > 1 && trace_.End(work[kept[latest]]) - second >
                                   kGraphProofNs + 2 * Tick())
          any = proven[latest] = true;
      }
      if (!any) {
        proven[static_cast<size_t>(std::max_element(last.begin(), last.end()) -
                                   last.begin())] = true;
      }
      for (const auto& work : replays) {
        auto& list = before_[work[i]];
        for (size_t k = 0; k < kept.size(); ++k)
          list.push_back(
              {work[kept[k]], proven[k] ? host::kAllReadings : kBestLow});
      }
    }
  }

  // The resolution of the times of device work.
  int64_t Tick() {
    if (tick_ == 0) {
      tick_ = 1000;
      for (const SliceId s : trace_.device_slices()) {
        if (trace_.Start(s) % 1000 != 0 || trace_.Duration(s) % 1000 != 0) {
          tick_ = 1;
          break;
        }
      }
    }
    return tick_;
  }

  struct Piece {
    uint32_t stream = 0;
    size_t place = 0;  // of the first work of the stream
    host::WorkStretch work;
    PodVector<Edge> edges;
    int64_t against_time = 0;
  };

  void Device() {
    place_.assign(trace_.device.size(), 0);
    g_.work_.AppendUninitialized(trace_.device_slices().size());
    std::vector<Piece> pieces;
    size_t place = 0;
    for (uint32_t i = 0; i < trace_.streams.size(); ++i) {
      const auto& slices = trace_.streams[i].slices;
      for (const host::WorkStretch& work :
           host::CutWork(trace_, slices, threads_))
        pieces.push_back({i, place, work, {}, 0});
      if (!slices.empty()) {
        g_.before_trace_.push_back(g_.first_device_ +
                                   2 * static_cast<uint32_t>(place));
      }
      place += slices.size();
    }
    LAMINA_CHECK(place == g_.work_.size());
    ParallelFor(threads_, pieces.size(), [&](size_t p) {
      const Piece& piece = pieces[p];
      const auto& slices = trace_.streams[piece.stream].slices;
      for (size_t i = piece.work.begin; i < piece.work.end; ++i) {
        const SliceId s = slices[i];
        const auto at = static_cast<uint32_t>(piece.place + i);
        place_[trace_.slices.detail[s.value]] = at;
        g_.work_[at] = s;
        const uint32_t node = g_.first_device_ + 2 * at;
        SetNode(node, trace_.Start(s), EdgeKind::kNone, {});
        SetNode(node + 1, trace_.End(s), KindOf(m_.kind(s)), s);
      }
    });
    several_ = trace_.streams.size() > 1 && m_.options().infer;
    if (several_) {
      best_.AppendUninitialized(g_.work_.size());
      follows_.assign(g_.work_.size(), 0);
    }
    // Each piece writes to a place of its own behind the edges of the threads,
    // which has room for nearly all cases; then they close up.
    constexpr size_t kMostEach = 3;
    const size_t threads = g_.edges_.size();
    Edge* const room =
        g_.edges_.AppendUninitialized(kMostEach * g_.work_.size());
    const auto room_of = [&](const Piece& piece) {
      return kMostEach * (piece.work.end - piece.work.begin);
    };
    for (Piece& piece : pieces) {
      piece.edges = PodVector<Edge>::Borrow(
          room + kMostEach * (piece.place + piece.work.begin), room_of(piece));
      piece.edges.clear();
    }
    ParallelFor(threads_, pieces.size(), [&](size_t p) { Stream(pieces[p]); });
    size_t count = threads;
    bool fit = true;
    for (const Piece& piece : pieces) {
      fit = fit && piece.edges.size() <= room_of(piece);
      count += piece.edges.size();
      against_time_ += piece.against_time;
    }
    PodVector<Edge> apart;
    if (!fit) {
      apart.append(g_.edges_.data(), threads);
      apart.AppendUninitialized(count - threads);
    }
    Edge* to = (fit ? g_.edges_ : apart).data() + threads;
    for (const Piece& piece : pieces)
      to = std::copy(piece.edges.begin(), piece.edges.end(), to);
    if (fit) {
      g_.edges_.resize(count);
    } else {
      g_.edges_ = std::move(apart);
    }
    before_.clear();
  }

  void Stream(Piece& piece) {
    const auto& slices = trace_.streams[piece.stream].slices;
    const auto& stretch = piece.work;
    SliceId previous =
        stretch.begin > 0 ? slices[stretch.begin - 1] : SliceId();
    SliceId run = stretch.before;  // holds the running maximum of the ends
    for (size_t k = stretch.begin; k < stretch.end; ++k) {
      const SliceId s = slices[k];
      const uint32_t node = StartNode(s);
      const uint32_t c = m_.call(s);
      // The latest arrival so far.
      int64_t best = kNoInt;
      const auto add = [&](uint32_t from, int64_t work, EdgeKind kind,
                           uint8_t readings = host::kAllReadings) {
        if (!AddTo(piece.edges, from, node, work, kind, s, readings)) {
          ++piece.against_time;
        } else if ((readings & host::kBest) != 0) {
          best = std::max(
              best, g_.times_[from] + int64_t{piece.edges.back().work_ns});
        }
      };
      // It follows work of its stream or graph. A gap that is the usual spacing
      // is work; an overlap is a negative one.
      const auto follow = [&](SliceId p, uint8_t readings) {
        const int64_t gap = trace_.Start(s) - trace_.End(p);
        const bool same = c != host::kNone && m_.call(p) == c;
        const int64_t usual =
            p.valid() ? spacing_[piece.stream][same ? 1 : 0] : 0;
        if (gap < 0) add(StartNode(p), 0, EdgeKind::kOverlap);
        add(EndNode(p), gap <= 2 * usual ? gap : usual, EdgeKind::kOrder,
            readings);
      };
      const auto before = before_.empty() ? before_.end() : before_.find(s);
      if (before != before_.end()) {
        for (const Before& b : before->second) follow(b.work, b.readings);
      } else if (run.valid()) {
        if (Sequence(run, s)) {
          follow(run, host::kAllReadings);
          if (several_ && run == previous) follows_[RowOf(s)] = 1;
        } else {
          // Truly beside it: after whatever ended last before it.
          add(StartNode(run), 0, EdgeKind::kOverlap);
          constexpr size_t kMostBack = 20;
          SliceId done;
          for (size_t i = k - std::min(k, kMostBack); i < k; ++i) {
            const SliceId p = slices[i];
            if (trace_.End(p) <= trace_.Start(s) + host::kDelayNs &&
                (!done.valid() || trace_.End(p) > trace_.End(done)))
              done = p;
          }
          if (done.valid()) follow(done, host::kAllReadings);
        }
      }
      const bool same =
          previous.valid() && c != host::kNone && m_.call(previous) == c;
      if (c != host::kNone && !same && start_[c] != kNoNode) {
        const Call& call = m_.calls()[c];
        if (fed_[c]) {
          add(start_[c], 0, EdgeKind::kLaunch);
          add(start_[c], kFloorNs - 1500, EdgeKind::kSubmit);
        } else {
          // Work never precedes its call: what follows from the other edge
          // where the work began after the call returned.
          const auto it = latency_.find(LatencyKey(call));
          const int64_t latency =
              it == latency_.end() ? kLatencyNs : it->second;
          if (call.full || latency < 0 || g_.times_[node] < g_.times_[end_[c]])
            add(start_[c], 0, EdgeKind::kLaunch);
          add(end_[c], latency, EdgeKind::kSubmit);
        }
      }
      for (const auto& [waits, on] : m_.Dependencies(s))
        add(EndNode(on), 0, EdgeKind::kDependency);
      if (several_) best_[RowOf(s)] = best;
      previous = s;
      if (!run.valid() || trace_.End(s) >= trace_.End(run)) run = s;
    }
  }

  // Of collectives: the shortest of each kind, and what the link allows.
  void Stretches() {
    struct Key {
      StringId name;
      int64_t elements;
      StringId group;
      auto operator<=>(const Key&) const = default;
    };
    std::map<Key, int64_t> shortest;
    std::vector<std::pair<uint32_t, Key>> found;
    std::vector<int64_t> bytes;
    for (uint32_t v = g_.first_device_ + 1; v < g_.times_.size(); v += 2) {
      if (g_.chain_[v] != EdgeKind::kComm) continue;
      const SliceId s = g_.owner_[v];
      const trace::DeviceArgs* args = trace_.Device(s);
      const trace::CollectiveArgs* c =
          args == nullptr ? nullptr : trace_.Collective(args->collective);
      Key key{trace_.slices.name[s.value], c == nullptr ? 0 : c->in_elements,
              c == nullptr ? StringId() : c->group};
      const auto size = c == nullptr || !c->dtype.valid()
                            ? std::nullopt
                            : CollectiveElementBytes(trace_.Text(c->dtype));
      constexpr int64_t kHalf = 2;  // bytes of an element
      const int64_t elements = std::clamp<int64_t>(
          c == nullptr ? 0 : c->in_elements, 0, int64_t{1} << 48);
      bytes.push_back(elements * size.value_or(kHalf));
      const auto [it, is_new] = shortest.try_emplace(key, trace_.Duration(s));
      it->second = std::min(it->second, trace_.Duration(s));
      found.emplace_back(v, key);
    }
    for (size_t i = 0; i < found.size(); ++i) {
      const int64_t least = shortest.at(found[i].second);
      g_.stretch_[found[i].first] = {
          least,
          std::min(least, kCollectiveNs + static_cast<int64_t>(
                                              static_cast<double>(bytes[i]) /
                                              kLinkBytesPerNs))};
    }
  }

  // A call that finds the queue full returns when work has started.
  void Queues() {
    for (const host::FullQueue& queue : m_.full_queues()) {
      const int64_t work = std::min(queue.usual_ns, kMostQueueNs);
      for (size_t i = queue.depth; i < queue.first.size(); ++i) {
        const uint32_t c = m_.call(queue.first[i]);
        const SliceId free = queue.first[i - queue.depth];
        if (end_[c] == kNoNode ||
            trace_.Start(free) > trace_.End(m_.calls()[c].slice))
          continue;
        Add(StartNode(free), end_[c], work, EdgeKind::kQueue,
            m_.calls()[c].slice);
      }
    }
  }

  void Syncs() {
    for (size_t w = 0; w < m_.waits().size(); ++w) {
      const Wait& wait = m_.waits()[w];
      const uint32_t node = waits_[w];
      if (node == kNoNode) continue;
      if (wait.how == WaitHow::kStaged) {
        const SliceId copy = m_.Work(m_.calls()[m_.CallOf(wait.slice)])[0];
        Add(StartNode(copy), node, m_.EndOf(wait) - trace_.Start(copy),
            EdgeKind::kCopy, copy);
        continue;
      }
      for (const host::WaitSource& source : m_.Sources(wait)) {
        const int64_t gap = g_.times_[node] - trace_.End(source.work);
        Add(EndNode(source.work), node, gap < kMostReturnNs ? gap : kReturnNs,
            wait.how == WaitHow::kPoll ? EdgeKind::kPoll : EdgeKind::kSync,
            wait.slice, source.readings,
            wait.inferred || source.readings != host::kAllReadings);
      }
    }
  }

  // --- waits between streams that no record names ---

  int64_t Residual(SliceId s) const {
    const int64_t best = best_[RowOf(s)];
    return best == kNoInt ? 0 : trace_.Start(s) - best;
  }

  // An edge from the end of work to the start of other work.
  void Depend(SliceId on, SliceId s, int64_t work, EdgeKind kind,
              uint8_t readings) {
    const size_t edges = g_.edges_.size();
    Add(EndNode(on), StartNode(s), work, kind, s, readings, true);
    if (g_.edges_.size() > edges && (readings & host::kBest) != 0) {
      int64_t& best = best_[RowOf(s)];
      best = std::max(best, trace_.End(on) + int64_t{g_.edges_.back().work_ns});
    }
  }

  // Calls that make a stream wait: what remains when impossible sources are
  // taken out.
  void WaitCalls() {
    if (!several_) return;
    const auto calls = m_.wait_calls();
    struct Found {
      SliceId on, work;
      uint8_t readings;
    };
    std::vector<Found> found;
    for (size_t i = 0; i < calls.size(); ++i) {
      const host::WaitCall& call = calls[i];
      const SliceId s = call.work;
      const bool single = (i == 0 || calls[i - 1].work != s) &&
                          (i + 1 == calls.size() || calls[i + 1].work != s);
      const int64_t until =
          single && call.record_ns != kNoInt ? call.record_ns : call.call_ns;
      std::vector<SliceId> on;
      for (uint32_t q = 0; q < m_.streams(); ++q) {
        if (q == m_.stream(s)) continue;
        const SliceId p = m_.LatestBefore(q, until);
        if (p.valid() && trace_.End(p) <= trace_.Start(s) + host::kTouchNs)
          on.push_back(p);
      }
      if (on.empty()) continue;
      if (on.size() == 1 && m_.streams() == 2) {
        found.push_back({on[0], s, host::kAllReadings});
        continue;
      }
      const auto launched = [&](SliceId p) {
        const uint32_t c = m_.call(p);
        return c == host::kNone ? int64_t{0}
                                : trace_.Start(m_.calls()[c].slice);
      };
      SliceId nearest = on[0], recent = on[0];
      for (const SliceId p : on) {
        if (trace_.End(p) > trace_.End(nearest)) nearest = p;
        if (launched(p) > launched(recent)) recent = p;
      }
      const bool hit = Residual(s) > host::kDelayNs &&
                       trace_.Start(s) - trace_.End(nearest) <= host::kNearNs;
      for (const SliceId p : on) {
        uint8_t readings = host::kLow;
        if (hit && p == nearest) readings = host::kAllReadings;
        if (!hit && p == recent) readings = kBestLow;
        found.push_back({p, s, readings});
      }
    }
    for (const Found& f : found)
      Depend(f.on, f.work, 0, EdgeKind::kDependencyCall, f.readings);
  }

  // A start that nothing explains, just after an end on another stream.
  struct Hit {
    SliceId on, work;
  };
  using Pair = std::pair<uint32_t, uint32_t>;  // streams
  using Names = std::pair<StringId, StringId>;

  void Infer() {
    if (!several_) return;
    const auto streams = static_cast<uint32_t>(m_.streams());
    std::vector<std::vector<Hit>> hits(streams);
    std::vector<int64_t> late(streams, 0);
    ParallelFor(threads_, streams, [&](size_t i) {
      size_t near = 0;
      for (const SliceId s : trace_.streams[i].slices) {
        if (m_.call(s) == host::kNone || Residual(s) <= host::kDelayNs)
          continue;
        ++late[i];
        const SliceId on = m_.Infer(s, trace_.Start(s) - Residual(s), &near);
        if (on.valid()) hits[i].push_back({on, s});
      }
    });
    int64_t first = 0, end = 0;
    bool any = false;
    for (const SliceId s : trace_.device_slices()) {
      first = any ? std::min(first, trace_.Start(s)) : trace_.Start(s);
      end = any ? std::max(end, trace_.End(s)) : trace_.End(s);
      any = true;
    }
    const auto span = static_cast<double>(std::max<int64_t>(1, end - first));
    std::map<Pair, std::vector<Hit>> by_pair;
    for (uint32_t to = 0; to < streams; ++to) {
      for (const Hit& hit : hits[to])
        by_pair[{m_.stream(hit.on), to}].push_back(hit);
    }
    // Pairs of names that were seen to wait, by their streams.
    std::map<Pair, absl::flat_hash_set<Names>> bound;
    for (const auto& [pair, found] : by_pair) {
      const double by_chance = std::min(
          1.0, static_cast<double>(trace_.streams[pair.first].slices.size()) *
                   static_cast<double>(host::kNearNs) / span);
      const bool trusted =
          Tail(late[pair.second], static_cast<int64_t>(found.size()),
               by_chance) < 1e-3;
      g_.counts_["dependencies_inferred"] += static_cast<int64_t>(found.size());
      if (!trusted) {
        g_.counts_["dependencies_doubtful"] +=
            static_cast<int64_t>(found.size());
      }
      for (const Hit& hit : found) {
        Depend(
            hit.on, hit.work, trace_.Start(hit.work) - trace_.End(hit.on),
            EdgeKind::kDependencyInferred,
            trusted ? host::kAllReadings : uint8_t{host::kBest | host::kHigh});
        if (trusted) {
          bound[pair].insert({trace_.slices.name[hit.on.value],
                              trace_.slices.name[hit.work.value]});
        }
      }
    }
    // What was seen to wait once waits in the other instances, too, unless one
    // of them contradicts; where nothing at all is said of waits any may exist.
    const bool possible = !m_.waits_recorded() && m_.wait_calls().empty();
    std::vector<Pair> pairs = possible ? PossiblePairs() : std::vector<Pair>();
    for (const auto& [pair, names] : bound) {
      if (m_.facts(pair.first).device == m_.facts(pair.second).device)
        pairs.push_back(pair);
    }
    std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
      return std::pair(a.second, a.first) < std::pair(b.second, b.first);
    });
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    std::vector<PodVector<Edge>> found(pairs.size());
    ParallelFor(threads_, pairs.size(), [&](size_t i) {
      static const absl::flat_hash_set<Names> kNothing;
      const auto it = bound.find(pairs[i]);
      OtherInstances(pairs[i], it == bound.end() ? kNothing : it->second,
                     possible, found[i]);
    });
    for (PodVector<Edge>& edges : found) {
      g_.edges_.append(edges.data(), edges.size());
      edges.Reset();
    }
  }

  // Streams of one device, each with those that it may wait for: all others,
  // or, of many, those that launch next to it, before and behind in the order
  // of their first launches. The number of pairs grows with the streams.
  std::vector<Pair> PossiblePairs() {
    std::vector<Pair> pairs;
    int64_t left_out = 0;
    for (const host::DeviceFacts& device : m_.devices()) {
      std::vector<uint32_t> streams;
      for (const uint32_t stream : device.streams) {
        if (!m_.order(stream).launched.empty()) streams.push_back(stream);
      }
      std::stable_sort(
          streams.begin(), streams.end(), [&](uint32_t a, uint32_t b) {
            return m_.order(a).launched[0] < m_.order(b).launched[0];
          });
      const size_t near = streams.size() <= kMostStreams + 1 ? streams.size()
                                                             : kMostStreams / 2;
      for (size_t to = 0; to < streams.size(); ++to) {
        const size_t first = to - std::min(to, near);
        const size_t end = std::min(streams.size(), to + near + 1);
        for (size_t from = first; from < end; ++from) {
          if (from != to) pairs.emplace_back(streams[from], streams[to]);
        }
        left_out += static_cast<int64_t>(streams.size() - (end - first));
      }
    }
    if (left_out > 0) g_.counts_["stream_pairs_left_out"] = left_out;
    return pairs;
  }

  void OtherInstances(const Pair& pair, const absl::flat_hash_set<Names>& bound,
                      bool possible, PodVector<Edge>& edges) {
    const HostModel::Order& from = m_.order(pair.first);
    const HostModel::Order& to = m_.order(pair.second);
    const auto for_each = [&](const auto& f) {
      size_t at = 0;
      for (size_t i = 0; i < to.work.size(); ++i) {
        while (at < from.launched.size() && from.launched[at] < to.launched[i])
          ++at;
        if (at == 0 || m_.call(to.work[i]) == host::kNone) continue;
        f(from.last[at - 1], to.work[i]);
      }
    };
    absl::flat_hash_set<Names> broken;
    const auto names = [&](SliceId on, SliceId s) {
      return Names{trace_.slices.name[on.value], trace_.slices.name[s.value]};
    };
    for_each([&](SliceId on, SliceId s) {
      if (trace_.End(on) > trace_.Start(s) + host::kTouchNs)
        broken.insert(names(on, s));
    });
    SliceId last_on, last_work;  // of the last edge in `low`
    for_each([&](SliceId on, SliceId s) {
      const Names key = names(on, s);
      if (!broken.empty() && broken.contains(key)) return;
      const bool seen = !bound.empty() && bound.contains(key);
      if (!seen && !possible) return;
      // Work that follows work which waits for the same waits, too.
      const bool follows = on == last_on && follows_[RowOf(s)] != 0 &&
                           RowOf(s) == RowOf(last_work) + 1;
      last_on = on;
      last_work = s;
      if (!seen && follows) return;
      AddTo(
          edges, EndNode(on), StartNode(s), 0,
          seen ? EdgeKind::kDependencyInferred : EdgeKind::kDependencyPossible,
          s, seen ? kBestLow : uint8_t{host::kLow}, true);
    });
  }

  // A wait between streams costs what it costs where it was the last to be met.
  void Lags() {
    const auto is_wait = [](EdgeKind kind) {
      return kind == EdgeKind::kDependency ||
             kind == EdgeKind::kDependencyCall ||
             kind == EdgeKind::kDependencyInferred ||
             kind == EdgeKind::kDependencyPossible;
    };
    std::vector<int64_t> met;
    for (uint32_t e = 0; e < g_.edges_.size(); ++e) {
      const Edge& edge = g_.edges_[e];
      if (!is_wait(edge.kind) || !edge.In(host::kBest)) continue;
      const int64_t from = g_.times_[edge.from];
      const int64_t after = g_.times_[edge.to] - from;
      if (after > host::kNearNs) continue;
      const auto in = g_.In(edge.to);
      if (std::all_of(in.begin(), in.end(), [&](uint32_t other) {
            const Edge& o = g_.edges_[other];
            return other == e || !o.In(host::kBest) ||
                   g_.times_[o.from] + o.work_ns <= from;
          }))
        met.push_back(after);
    }
    constexpr size_t kLeast = 3;
    if (met.size() < kLeast) return;
    const int64_t lag = Pick(met, 0.25);
    for (Edge& edge : g_.edges_.span()) {
      if (!is_wait(edge.kind)) continue;
      const int64_t after = g_.times_[edge.to] - g_.times_[edge.from];
      edge.work_ns = std::max<int64_t>(edge.work_ns, std::min(lag, after));
    }
  }

  // Starts that nothing explains: from outside at their time in `low` unless
  // they are a constant delay; in `best` if they are also long and come again
  // at the same kernel. Right after its launch a delay is the host's.
  void Pins() {
    struct Start {
      int64_t best, low;  // residuals
      uint32_t node;
      bool launched;  // the last to be met was its launch
    };
    struct Group {
      size_t all = 0;
      std::vector<Start> late;
    };
    std::vector<std::vector<Graph::Pin>> found(trace_.streams.size());
    std::vector<uint32_t> first(trace_.streams.size() + 1, g_.first_device_);
    for (size_t i = 0; i < trace_.streams.size(); ++i) {
      first[i + 1] =
          first[i] + 2 * static_cast<uint32_t>(trace_.streams[i].slices.size());
    }
    ParallelFor(threads_, trace_.streams.size(), [&](size_t i) {
      absl::flat_hash_map<StringId, Group> groups;
      StringId known;
      Group* of_known = nullptr;
      for (uint32_t v = first[i]; v < first[i + 1]; v += 2) {
        const SliceId s = g_.Work(v);
        const StringId name = trace_.slices.name[s.value];
        if (of_known == nullptr || name != known) of_known = &groups[name];
        known = name;
        ++of_known->all;
        const auto in = g_.In(v);
        if (in.empty()) continue;
        int64_t best = kNoInt, low = kNoInt;
        bool launched = false;
        for (const uint32_t e : in) {
          const Edge& edge = g_.edges_[e];
          const int64_t arrival = g_.times_[edge.from] + edge.work_ns;
          if (edge.In(host::kBest) && arrival > best) {
            best = arrival;
            launched = edge.kind == EdgeKind::kSubmit ||
                       edge.kind == EdgeKind::kLaunch;
          }
          if (edge.In(host::kLow)) low = std::max(low, arrival);
        }
        const int64_t time = g_.times_[v];
        const int64_t x = best == kNoInt ? 0 : time - best;
        const int64_t y = low == kNoInt ? 0 : time - low;
        const uint32_t c = m_.call(s);
        if (c != host::kNone && fed_[c]) continue;  // the host is the cause
        if (std::max(x, y) > kPinNs)
          of_known->late.push_back({x, y, v, launched});
      }
      for (const auto& [name, group] : groups) {
        std::vector<int64_t> delays;
        for (const Start& start : group.late) delays.push_back(start.best);
        constexpr size_t kLeast = 3;
        if (delays.size() >= kLeast &&
            5 * (Pick(delays, 0.9) - Pick(delays, 0.1)) <=
                Pick(delays, 0.5) + 5 * host::kDelayNs)
          continue;
        for (const Start& start : group.late) {
          uint8_t readings = 0;
          if (start.low > kPinNs) readings |= host::kLow;
          if (start.best > (start.launched ? kQuietLaunchNs : kQuietNs) &&
              group.late.size() >= kLeast &&
              10 * group.late.size() >= 3 * group.all)
            readings |= host::kBest;
          if (readings != 0) found[i].push_back({start.node, readings});
        }
      }
    });
    for (const auto& list : found)
      pins_.insert(pins_.end(), list.begin(), list.end());
    g_.SetPins(std::move(pins_));
  }

  const HostModel& m_;
  const Trace& trace_;
  Graph& g_;
  const int threads_;
  std::vector<std::unique_ptr<Special>> special_;  // by thread
  absl::flat_hash_map<StringId, int64_t> own_;     // of calls that wait
  absl::flat_hash_map<uint64_t, int64_t> latency_;
  std::vector<std::array<int64_t, 2>>
      spacing_;                     // by stream: other, same launch
  std::vector<bool> fed_;           // calls that feed a copy
  std::vector<Stretch> stretches_;  // by thread and time
  PodVector<Top> tops_;
  std::vector<uint32_t> start_, end_;  // nodes of calls
  std::vector<uint32_t> waits_;        // end nodes of waits
  std::vector<uint32_t> place_;        // by row of device arguments: of work_
  absl::flat_hash_map<SliceId, std::vector<Before>> before_;
  std::vector<Graph::Pin> pins_;
  // Of starts of device work, by row: the latest arrival, and whether it
  // follows the work before it on its stream.
  PodVector<int64_t> best_;
  std::vector<uint8_t> follows_;
  bool several_ = false;  // streams, whose waits may be inferred
  int64_t tick_ = 0;
  int64_t against_time_ = 0;
};

Result<Graph> Graph::Of(const Context& context) {
  LAMINA_ASSIGN(const HostModel* const model, context.Get<HostModel>());
  return Build(*model);
}

Graph Graph::Build(const HostModel& model) {
  Graph graph;
  GraphBuilder(model, graph).Run();
  return graph;
}

}  // namespace lamina::analysis::path
