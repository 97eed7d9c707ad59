// SPDX-License-Identifier: Apache-2.0
//
// Building the graph: host points, the baton between threads, device work,
// waits; then the order and the critical edges. Linear after sorting.
#include "analysis/path/graph.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>

#include "analysis/host/work_stretch.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/stop.h"

namespace lamina::analysis::path {

using host::Call;
using host::Wait;
using host::WorkKind;

namespace {

// A thread that wakes after a longer gap than this was waiting.
constexpr int64_t kAsleepNs = 2 * host::kNearNs;

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

}  // namespace

std::string_view EdgeKindName(EdgeKind kind) {
  static constexpr std::array<std::string_view, 17> kNames = {
      "compute",
      "comm",
      "copy",
      "fill",
      "sync",
      "dependency",
      "dependency_inferred",
      "stream_order",
      "stream_overlap",
      "launch",
      "host",
      "baton",
      "host_gap",
      "sync_wait",
      "host_asleep",
      "collective",
      ""};
  return kNames[static_cast<size_t>(kind)];
}

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
    LAMINA_CHECK(2 * (host + m_.calls().size() + device) < kChain);
    start_.assign(m_.calls().size(), kNoNode);
    end_.assign(m_.calls().size(), kNoNode);
    submit_.assign(m_.calls().size(), kNoNode);
    waits_.assign(m_.waits().size(), kNoNode);
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
    Device();
    LookForStop();
    Syncs();
    g_.parts_.push_back({&m_, 0, g_.first_device_, g_.first_device_,
                         static_cast<uint32_t>(nodes) - g_.first_device_, 0,
                         0});
    // Of no use any more while the graph reaches its size.
    for (auto* list : {&start_, &end_, &submit_, &waits_, &place_})
      std::vector<uint32_t>().swap(*list);
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

  // Events of a thread behind which all that were open have ended: they make
  // nodes of their own, whatever was before.
  struct Stretch {
    uint32_t thread = 0;
    size_t begin = 0, end = 0;  // of the events of the thread
    bool slow = false;          // has a slow call
    uint32_t node = 0, nodes = 0;
    PodVector<Top> tops;                               // stand in tops_
    std::vector<std::pair<uint32_t, int64_t>> staged;  // work of chain edges
    int64_t clamped = 0;
  };

  // --- host ---
  // Makes the nodes of a stretch, or counts them.
  template <bool kWrite>
  class Walk {
   public:
    Walk(GraphBuilder& builder, Stretch& stretch)
        : b_(builder),
          m_(builder.m_),
          trace_(builder.trace_),
          stretch_(stretch),
          thread_(builder.m_.threads()[stretch.thread]),
          node_(stretch.node),
          first_of_thread_(stretch.begin == 0) {}

    // How many nodes there are.
    uint32_t Run() {
      const auto& waits = thread_.waits;
      // Starts of other stretches differ.
      size_t wait = static_cast<size_t>(
          std::partition_point(waits.begin(), waits.end(),
                               [&](uint32_t w) {
                                 return trace_.Start(m_.waits()[w].slice) <
                                        trace_.Start(
                                            thread_.events[stretch_.begin]);
                               }) -
          waits.begin());
      for (size_t i = stretch_.begin; i < stretch_.end; ++i) {
        const SliceId s = thread_.events[i];
        const int64_t start = trace_.Start(s);
        while (!open_.empty() && open_.back().end <= start) CloseOne();
        Open o;
        o.slice = s;
        o.end = trace_.End(s);
        if (!open_.empty() && open_.back().end < o.end) {
          ++clamped_;
          o.end = open_.back().end;
        }
        const uint32_t node = Point(start);
        o.call = m_.CallOf(s);
        if (kWrite && o.call != host::kNone) b_.start_[o.call] = node;
        if (wait < waits.size() && m_.waits()[waits[wait]].slice == s) {
          o.wait = waits[wait++];
          o.blocking = m_.waits()[o.wait].target.valid();
          if (o.blocking) ++blocking_;
        }
        if (open_.empty()) {
          top_ = Top();
          top_.start = start;
          top_.node = node;
        }
        open_.push_back(o);
      }
      while (!open_.empty()) CloseOne();
      if (kWrite) stretch_.clamped = clamped_;
      return node_ - stretch_.node;
    }

   private:
    struct Open {
      SliceId slice;
      int64_t end = 0;
      uint32_t call = host::kNone;
      uint32_t wait = host::kNone;
      bool blocking = false;
    };

    void CloseOne() {
      const Open o = open_.back();
      const bool has_submit =
          o.call != host::kNone &&
          m_.calls()[o.call].submit_ns > trace_.Start(o.slice);
      if (has_submit) {
        const int64_t submit = m_.calls()[o.call].submit_ns;
        if (last_ns_ <= submit && submit <= o.end) {
          const uint32_t node = Point(submit);
          if (kWrite) b_.submit_[o.call] = node;
        }
      }
      const uint32_t node = Point(o.end);
      if (kWrite && o.call != host::kNone) b_.end_[o.call] = node;
      if (kWrite && o.wait != host::kNone) b_.waits_[o.wait] = node;
      if (o.blocking) --blocking_;
      open_.pop_back();
      if (kWrite && open_.empty() && thread_.takes_part) {
        top_.end = o.end;
        top_.end_node = node;
        stretch_.tops.push_back(top_);
      }
    }

    // A point of the thread behind the one before it.
    uint32_t Point(int64_t time) {
      const uint32_t node = node_++;
      if (kWrite) {
        EdgeKind kind = EdgeKind::kHost;
        SliceId owner;
        if (first_of_thread_) {
          kind = EdgeKind::kNone;
        } else if (open_.empty()) {
          kind = EdgeKind::kHostGap;
        } else {
          const Open& own = open_.back();
          owner = own.slice;
          if (own.call != host::kNone && m_.calls()[own.call].staged) {
            const int64_t dt = time - last_ns_;
            const SliceId copy = m_.Work(m_.calls()[own.call])[0];
            const int64_t work = std::max<int64_t>(
                0, std::min(dt, trace_.Start(copy) - last_ns_));
            if (work != dt) stretch_.staged.emplace_back(node, work);
          } else if (blocking_ > 0) {
            kind = EdgeKind::kSyncWait;
          }
        }
        b_.SetNode(node, time, kind, owner);
      }
      first_of_thread_ = false;
      last_ns_ = time;
      return node;
    }

    GraphBuilder& b_;
    const HostModel& m_;
    const Trace& trace_;
    Stretch& stretch_;
    const host::Thread& thread_;
    uint32_t node_;
    int64_t last_ns_ = 0;  // time of the last node
    bool first_of_thread_;
    int blocking_ = 0;
    int64_t clamped_ = 0;
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
      int64_t reached = trace::kNoInt;  // latest end in it
      size_t cut = 0;  // first event behind all before; `end`: there is none
    };
    std::vector<Range> ranges;
    for (uint32_t t = 0; t < m_.threads().size(); ++t) {
      const size_t events = m_.threads()[t].events.size();
      for (size_t begin = 0; begin < events; begin += kGrain)
        ranges.push_back({t, begin, std::min(events, begin + kGrain)});
    }
    ParallelFor(threads_, ranges.size(), [&](size_t r) {
      Range& range = ranges[r];
      const auto& events = m_.threads()[range.thread].events;
      for (size_t i = range.begin; i < range.end; ++i)
        range.reached = std::max(range.reached, trace_.End(events[i]));
    });
    std::vector<int64_t> before(ranges.size(), trace::kNoInt);
    for (size_t r = 1; r < ranges.size(); ++r) {
      if (ranges[r].thread == ranges[r - 1].thread)
        before[r] = std::max(before[r - 1], ranges[r - 1].reached);
    }
    ParallelFor(threads_, ranges.size(), [&](size_t r) {
      Range& range = ranges[r];
      const auto& events = m_.threads()[range.thread].events;
      int64_t reached = before[r];
      range.cut = range.begin;
      while (range.cut < range.end && range.begin > 0 &&
             trace_.Start(events[range.cut]) <= reached) {
        reached = std::max(reached, trace_.End(events[range.cut]));
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

  // Gives stretches their numbers of nodes; returns how many there are. A node
  // for each end of an event, and some of slow calls have one between.
  uint32_t NumberNodes() {
    for (const Call& call : m_.calls()) {
      if (!call.slow) continue;
      const int64_t start = trace_.Start(call.slice);
      const auto behind = std::upper_bound(
          stretches_.begin(), stretches_.end(), std::pair(call.thread, start),
          [&](const auto& key, const Stretch& stretch) {
            return key < std::pair(stretch.thread, StartOf(stretch));
          });
      std::prev(behind)->slow = true;
    }
    ParallelFor(threads_, stretches_.size(), [&](size_t i) {
      Stretch& stretch = stretches_[i];
      stretch.nodes =
          stretch.slow ? Walk<false>(*this, stretch).Run()
                       : 2 * static_cast<uint32_t>(stretch.end - stretch.begin);
    });
    uint32_t node = 0;
    uint32_t thread = kNoNode;
    for (Stretch& stretch : stretches_) {
      if (stretch.thread != thread) g_.thread_begin_.push_back(node);
      thread = stretch.thread;
      stretch.node = node;
      node += stretch.nodes;
    }
    g_.thread_begin_.push_back(node);
    return node;
  }
  int64_t StartOf(const Stretch& stretch) const {
    return trace_.Start(m_.threads()[stretch.thread].events[stretch.begin]);
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
      const uint32_t nodes = Walk<true>(*this, stretch).Run();
      LAMINA_CHECK(nodes == stretch.nodes);
    });
    int64_t clamped = 0;
    for (const Stretch& stretch : stretches_) {
      clamped += stretch.clamped;
      for (const auto& [node, work] : stretch.staged)
        g_.staged_work_[node] = work;
    }
    if (clamped > 0) g_.counts_["host_bleed_clamped"] = clamped;
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
      if (last != ring && (!was_idle || idle[last].time > mine)) {
        const bool gap = g_.chain_[top.node] == EdgeKind::kHostGap;
        if (!gap || g_.times_[top.node] - g_.times_[top.node - 1] > kAsleepNs) {
          if (gap) g_.chain_[top.node] = EdgeKind::kHostAsleep;
          edges_.Add(g_, idle[last].node, top.node, 0, EdgeKind::kBaton, {});
          ++g_.counts_["batons"];
        }
      }
      ends.push({top.end, top.end_node, thread});
    }
  }

  // --- device ---
  uint32_t StartNode(SliceId s) const {
    return g_.first_device_ + 2 * place_[trace_.slices.detail[s.value]];
  }
  uint32_t EndNode(SliceId s) const { return StartNode(s) + 1; }

  // Edges in order, and what was counted while they were made.
  struct Edges {
    PodVector<Edge> edges;
    int64_t against_time = 0;
    int64_t inferred = 0;
    std::vector<uint32_t> before_trace;

    void Add(const Graph& graph, uint32_t from, uint32_t to, int64_t work,
             EdgeKind kind, SliceId owner, bool is_inferred = false) {
      const int64_t dt = graph.times_[to] - graph.times_[from];
      if (dt < 0) {
        ++against_time;
        return;
      }
      Edge edge;
      edge.from = from;
      edge.to = to;
      edge.work_ns = std::clamp(std::min(work, dt), -kMostWorkNs, kMostWorkNs);
      edge.owner = owner;
      edge.kind = kind;
      edge.inferred = is_inferred;
      edges.push_back(edge);
    }
  };

  void Device() {
    place_.assign(trace_.device.size(), 0);
    g_.work_.AppendUninitialized(trace_.device_slices().size());
    struct Piece {
      uint32_t stream;
      size_t place;  // of the first work of the stream
      host::WorkStretch work;
      Edges edges;
    };
    std::vector<Piece> pieces;
    size_t place = 0;
    for (uint32_t i = 0; i < trace_.streams.size(); ++i) {
      const auto& slices = trace_.streams[i].slices;
      for (const host::WorkStretch& work :
           host::CutWork(trace_, slices, threads_))
        pieces.push_back({i, place, work, {}});
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
    // Behind the edges of the threads each piece writes to a place of its own,
    // which has room for nearly all cases; then they close up.
    constexpr size_t kMostEach = 3;
    const size_t threads = edges_.edges.size();
    g_.edges_.append(edges_.edges.data(), threads);
    Edge* const room =
        g_.edges_.AppendUninitialized(kMostEach * g_.work_.size());
    const auto room_of = [&](const Piece& piece) {
      return kMostEach * (piece.work.end - piece.work.begin);
    };
    for (Piece& piece : pieces) {
      piece.edges.edges = PodVector<Edge>::Borrow(
          room + kMostEach * (piece.place + piece.work.begin), room_of(piece));
      piece.edges.edges.clear();
    }
    ParallelFor(threads_, pieces.size(), [&](size_t p) {
      Stream(pieces[p].stream, pieces[p].work, pieces[p].edges);
    });
    size_t count = threads;
    bool fit = true;
    for (const Piece& piece : pieces) {
      fit = fit && piece.edges.edges.size() <= room_of(piece);
      count += piece.edges.edges.size();
    }
    PodVector<Edge> apart;
    if (!fit) {
      apart.append(g_.edges_.data(), threads);
      apart.AppendUninitialized(count - threads);
    }
    Edge* to = (fit ? g_.edges_ : apart).data() + threads;
    for (const Piece& piece : pieces)
      to = std::copy(piece.edges.edges.begin(), piece.edges.edges.end(), to);
    if (fit) {
      g_.edges_.resize(count);
    } else {
      g_.edges_ = std::move(apart);
    }
    g_.edges_.shrink_to_fit();
    edges_.edges.Reset();
    int64_t inferred = 0;
    for (const Piece& piece : pieces) {
      edges_.against_time += piece.edges.against_time;
      inferred += piece.edges.inferred;
      g_.before_trace_.insert(g_.before_trace_.end(),
                              piece.edges.before_trace.begin(),
                              piece.edges.before_trace.end());
    }
    if (inferred > 0) g_.counts_["dependencies_inferred"] = inferred;
    std::sort(g_.before_trace_.begin(), g_.before_trace_.end());
  }

  void Stream(uint32_t i, const host::WorkStretch& stretch, Edges& edges) {
    const host::StreamFacts& facts = m_.facts(i);
    const auto& slices = trace_.streams[i].slices;
    size_t near = 0;  // of the last inferred wait
    SliceId previous =
        stretch.begin > 0 ? slices[stretch.begin - 1] : SliceId();
    SliceId last = stretch.before;  // of the running maximum of the ends
    for (size_t k = stretch.begin; k < stretch.end; ++k) {
      const SliceId s = slices[k];
      const uint32_t node = StartNode(s);
      const int64_t start = trace_.Start(s);
      const uint32_t c = m_.call(s);
      const bool same =
          previous.valid() && c != host::kNone && m_.call(previous) == c;
      // What is explained so far: the latest arrival.
      int64_t explained = trace::kNoInt;
      if (last.valid() && trace_.End(last) <= start) {
        int64_t gap = same ? facts.graph_gap_ns : facts.gap_ns;
        if (!(same ? facts.graph_gap_known : facts.gap_known)) gap = 0;
        edges.Add(g_, EndNode(last), node, gap, EdgeKind::kStreamOrder, s);
        explained = trace_.End(last) + std::min(gap, start - trace_.End(last));
      } else if (previous.valid()) {
        edges.Add(g_, StartNode(previous), node, 0, EdgeKind::kStreamOverlap,
                  s);
      }
      if (c != host::kNone && !same) {
        const Call& call = m_.calls()[c];
        const uint32_t from = submit_[c] == kNoNode ? start_[c] : submit_[c];
        const int64_t ready = m_.Ready(s);
        edges.Add(g_, from, node, ready - g_.times_[from], EdgeKind::kLaunch,
                  s);
        if (call.staged)
          edges.Add(g_, node, end_[c], trace_.End(call.slice) - start,
                    EdgeKind::kCopy, s);
        explained = std::max(explained, std::min(start, ready));
      }
      for (const auto& [waits, on] : m_.Dependencies(s)) {
        edges.Add(g_, EndNode(on), node, 0, EdgeKind::kDependency, s);
        explained = std::max(explained, trace_.End(on));
      }
      if (!previous.valid() && c != host::kNone &&
          start - explained > host::kMaxLatencyNs)
        edges.before_trace.push_back(node);
      if (explained != trace::kNoInt && c != host::kNone &&
          start - explained > host::kDelayNs) {
        const SliceId source = m_.Infer(s, explained, &near);
        if (source.valid()) {
          edges.Add(g_, EndNode(source), node, 0, EdgeKind::kDependencyInferred,
                    s, true);
          ++edges.inferred;
        }
      }
      previous = s;
      if (!last.valid() || trace_.End(s) >= trace_.End(last)) last = s;
    }
  }

  void Syncs() {
    const auto& waits = m_.waits();
    const auto add = [&](const Wait& wait, uint32_t node, SliceId work) {
      edges_.Add(g_, EndNode(work), node, 0, EdgeKind::kSync, wait.slice,
                 wait.inferred);
    };
    for (size_t w = 0; w < waits.size(); ++w) {
      if (waits[w].target.valid() && waits_[w] != kNoNode)
        add(waits[w], waits_[w], waits[w].target);
    }
    for (size_t w = 0; w < waits.size(); ++w) {
      for (const SliceId k : m_.Sources(waits[w])) {
        if (k != waits[w].target && waits_[w] != kNoNode)
          add(waits[w], waits_[w], k);
      }
    }
    g_.edges_.append(edges_.edges.data(), edges_.edges.size());
    edges_.edges.Reset();
    if (edges_.against_time > 0)
      g_.counts_["edges_against_time"] = edges_.against_time;
  }

  const HostModel& m_;
  const Trace& trace_;
  Graph& g_;
  const int threads_;
  std::vector<Stretch> stretches_;  // by thread and time
  PodVector<Top> tops_;
  std::vector<uint32_t> start_, end_, submit_;  // nodes of calls
  std::vector<uint32_t> waits_;                 // end nodes of waits
  std::vector<uint32_t> place_;  // by row of device arguments: of work_
  Edges edges_;                  // of threads; behind Device(), of waits
};

bool Graph::TryJoin(const std::vector<JoinPart>& parts,
                    std::vector<JoinedWork>& collectives) {
  constexpr int64_t kTogetherNs = 50000;
  // Hosts of all parts, then collectives, then devices of all parts: chain
  // edges keep joining neighbours.
  const auto take = [&](const JoinPart& part, uint32_t begin, uint32_t end) {
    const Graph& from = *part.graph;
    for (uint32_t v = begin; v < end; ++v) {
      times_.push_back(part.clock(from.times_[v]));
      chain_.push_back(from.chain_[v]);
      owner_.push_back(from.owner_[v]);
      chain_work_.push_back(
          from.chain_[v] == EdgeKind::kNone
              ? 0
              : std::min(from.chain_work(v),
                         times_.back() - times_[times_.size() - 2]));
    }
  };
  const auto size = [&] { return static_cast<uint32_t>(times_.size()); };
  for (const JoinPart& part : parts) {
    const Graph& from = *part.graph;
    Part own;
    own.model = from.parts_[0].model;
    own.first_host = size();
    own.hosts = from.first_device_;
    own.first_thread = static_cast<uint32_t>(thread_begin_.size());
    for (size_t t = 0; t + 1 < from.thread_begin_.size(); ++t)
      thread_begin_.push_back(own.first_host + from.thread_begin_[t]);
    take(part, 0, from.first_device_);
    parts_.push_back(own);
    for (const auto& [what, count] : from.counts_) counts_[what] += count;
  }
  thread_begin_.push_back(size());
  const uint32_t first_collective = size();
  first_device_ = first_collective + static_cast<uint32_t>(collectives.size());
  for (size_t c = 0; c < collectives.size(); ++c) {
    times_.push_back(0);
    chain_.push_back(EdgeKind::kNone);
    chain_work_.push_back(0);
    owner_.push_back(SliceId());
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const Graph& from = *parts[i].graph;
    Part& own = parts_[i];
    own.first_device = size();
    own.devices = static_cast<uint32_t>(from.nodes()) - own.hosts;
    take(parts[i], from.first_device_, static_cast<uint32_t>(from.nodes()));
    work_.append(from.work_.data(), from.work_.size());
    for (const uint32_t v : from.before_trace_)
      before_trace_.push_back(NodeOf(static_cast<uint32_t>(i), v));
    own.first_edge = static_cast<uint32_t>(edges_.size());
    for (Edge edge : from.edges_) {
      edge.from = NodeOf(static_cast<uint32_t>(i), edge.from);
      edge.to = NodeOf(static_cast<uint32_t>(i), edge.to);
      edge.work_ns =
          std::min<int64_t>(edge.work_ns, times_[edge.to] - times_[edge.from]);
      edges_.push_back(edge);
    }
  }
  std::sort(before_trace_.begin(), before_trace_.end());

  const auto add = [&](uint32_t from, uint32_t to, int64_t work,
                       SliceId owner) {
    Edge edge;
    edge.from = from;
    edge.to = to;
    edge.work_ns = std::clamp(work, -kMostWorkNs, kMostWorkNs);
    edge.owner = owner;
    edge.kind = EdgeKind::kCollective;
    edges_.push_back(edge);
  };
  for (size_t c = 0; c < collectives.size(); ++c) {
    const uint32_t node = first_collective + static_cast<uint32_t>(c);
    std::vector<uint32_t> starts;
    int64_t together = 0, first_end = 0, last_end = 0, shortest = 0;
    for (const auto& [part, slice] : collectives[c].members) {
      const uint32_t v = NodeOfWork(part, slice);
      const int64_t end = times_[v + 1], length = end - times_[v];
      const bool first = starts.empty();
      together = first ? times_[v] : std::max(together, times_[v]);
      first_end = first ? end : std::min(first_end, end);
      last_end = first ? end : std::max(last_end, end);
      shortest = first ? length : std::min(shortest, length);
      starts.push_back(v);
    }
    times_[node] = together;
    if (starts.size() < 2) continue;
    if (last_end - first_end > kTogetherNs || first_end < together) {
      ++counts_["collectives_not_together"];
      continue;
    }
    ++counts_["collectives_joined"];
    collectives_.push_back({node, collectives[c]});
    for (const uint32_t v : starts) {
      add(v, node, 0, SliceId());
      chain_[v + 1] = EdgeKind::kNone;
      chain_work_[v + 1] = 0;
      collective_edges_[v + 1] = static_cast<uint32_t>(edges_.size());
      add(node, v + 1, std::min(shortest, times_[v + 1] - together),
          owner_[v + 1]);
    }
  }
  MakeLists();
  if (MakeOrder()) return true;
  // Zero lengths in a circle: the collectives in it do not fit to each other.
  std::vector<bool> placed(nodes(), false);
  for (const uint32_t v : order_) placed[v] = true;
  std::vector<JoinedWork> left;
  for (size_t c = 0; c < collectives.size(); ++c) {
    if (placed[first_collective + c]) left.push_back(std::move(collectives[c]));
  }
  LAMINA_CHECK(left.size() < collectives.size());
  collectives = std::move(left);
  return false;
}

Graph Graph::Join(const std::vector<JoinPart>& parts,
                  const std::vector<JoinedWork>& collectives) {
  std::vector<JoinedWork> fit = collectives;
  while (true) {
    Graph graph;
    if (!graph.TryJoin(parts, fit)) continue;
    if (fit.size() < collectives.size())
      graph.counts_["collectives_in_circles"] =
          static_cast<int64_t>(collectives.size() - fit.size());
    graph.MakeCritical();
    graph.FindEnds();
    return graph;
  }
}

Graph Graph::Build(const HostModel& model) {
  Graph graph;
  GraphBuilder(model, graph).Run();
  return graph;
}

EdgeLists::EdgeLists(size_t nodes, std::span<const Edge> edges,
                     uint32_t Edge::*node)
    : words_(nodes / 64 + 1) {
  for (const Edge& edge : edges)
    words_[edge.*node / 64].has |= uint64_t{1} << (edge.*node % 64);
  uint32_t rows = 0;
  for (Word& word : words_) {
    word.before = rows;
    rows += static_cast<uint32_t>(std::popcount(word.has));
  }
  begin_.resize(rows + 1);
  for (const Edge& edge : edges) ++begin_[Row(edge.*node)];
  uint32_t end = 0;
  for (uint32_t& begin : begin_) begin = end += begin;
  // Filled from the back: what was the end of each becomes its begin.
  edges_.resize(edges.size());
  for (size_t e = edges.size(); e-- > 0;)
    edges_[--begin_[Row(edges[e].*node)]] = static_cast<uint32_t>(e);
}

void Graph::MakeLists() {
  ParallelFor(Threads(), 2, [&](size_t i) {
    if (i == 0) in_ = EdgeLists(nodes(), edges(), &Edge::to);
    if (i == 1) out_ = EdgeLists(nodes(), edges(), &Edge::from);
  });
}

// Kahn's method, first come first served. False: there is a cycle.
bool Graph::MakeOrder() {
  const auto n = static_cast<uint32_t>(nodes());
  constexpr size_t kGrain = size_t{1} << 18;
  PodVector<uint32_t>& open = position_;  // predecessors that are not placed
  open.clear();
  open.AppendUninitialized(n);
  order_.clear();
  order_.reserve(n);
  for (uint32_t v = 0; v < n; ++v)
    open[v] = chain_[v] == EdgeKind::kNone ? 0 : 1;
  for (const Edge& edge : edges_) ++open[edge.to];
  for (uint32_t v = 0; v < n; ++v) {
    if (open[v] == 0) order_.push_back(v);
  }
  for (size_t i = 0; i < order_.size(); ++i) {
    const uint32_t u = order_[i];
    if (u + 1 < n && chain_[u + 1] != EdgeKind::kNone && --open[u + 1] == 0)
      order_.push_back(u + 1);
    for (const uint32_t e : Out(u)) {
      if (--open[edges_[e].to] == 0) order_.push_back(edges_[e].to);
    }
  }
  if (order_.size() < n) return false;
  ParallelRanges(Threads(), n, kGrain, [&](size_t begin, size_t end, size_t) {
    for (size_t i = begin; i < end; ++i)
      position_[order_[i]] = static_cast<uint32_t>(i);
  });
  return true;
}

void Graph::Finish() {
  MakeLists();
  bool ordered = false;
  ParallelFor(Threads(), 2, [&](size_t i) {
    if (i == 0) ordered = MakeOrder();
    if (i == 1) MakeCritical();
  });
  if (!ordered) {
    // Edges of zero length in a circle: those between nodes that could not be
    // placed go; chain edges alone have no circle.
    std::vector<bool> placed(nodes(), false);
    for (const uint32_t v : order_) placed[v] = true;
    const size_t kept = static_cast<size_t>(
        std::remove_if(
            edges_.begin(), edges_.end(),
            [&](const Edge& e) { return !placed[e.from] && !placed[e.to]; }) -
        edges_.begin());
    counts_["edges_in_circles"] += static_cast<int64_t>(edges_.size() - kept);
    edges_.resize(kept);
    MakeLists();
    LAMINA_CHECK(MakeOrder());
    MakeCritical();
  }
}

void Graph::MakeCritical() {
  const auto n = static_cast<uint32_t>(nodes());
  critical_.clear();
  critical_.AppendUninitialized(in_.rows());
  for (uint32_t v = 0, row = 0; v < n; ++v) {
    if (!in_.Has(v)) {
      LAMINA_CHECK(chain_[v] == EdgeKind::kNone ||
                   times_[v - 1] + chain_work(v) <= times_[v]);
      continue;
    }
    int64_t best = 0;
    EdgeKind kind = EdgeKind::kNone;
    uint32_t critical = kNoNode;
    if (chain_[v] != EdgeKind::kNone) {
      best = times_[v - 1] + chain_work(v);
      kind = chain_[v];
      critical = kChain;
    }
    // A chain edge is older than every other one of its kind.
    for (const uint32_t e : in_.OfRow(row)) {
      const Edge& edge = edges_[e];
      const int64_t arrival = times_[edge.from] + edge.work_ns;
      if (critical == kNoNode || arrival > best ||
          (arrival == best && edge.kind < kind)) {
        best = arrival;
        kind = edge.kind;
        critical = e;
      }
    }
    critical_[row++] = critical;
    LAMINA_CHECK(best <= times_[v]);
  }
}

int64_t Graph::residual(uint32_t v) const {
  const uint32_t critical = this->critical(v);
  if (critical == kNoNode) return 0;
  if (critical == kChain) return times_[v] - times_[v - 1] - chain_work(v);
  const Edge& edge = edges_[critical];
  return times_[v] - times_[edge.from] - edge.work_ns;
}

void Graph::FindEnds() {
  bool any = false;
  const auto see = [&](uint32_t begin, uint32_t end) {
    for (uint32_t v = begin; v < end; ++v) {
      if (!any || times_[v] < start_ns_) start_ns_ = times_[v];
      any = true;
      if (sink_ == kNoNode || std::pair(times_[v], position_[v]) >
                                  std::pair(times_[sink_], position_[sink_]))
        sink_ = v;
    }
  };
  // Whole threads: those of a part stand together.
  for (size_t t = 0; t + 1 < thread_begin_.size(); ++t) {
    if (thread_begin_[t] < thread_begin_[t + 1] && TakesPart(thread_begin_[t]))
      see(thread_begin_[t], thread_begin_[t + 1]);
  }
  see(first_device_, static_cast<uint32_t>(nodes()));
}

uint32_t Graph::PartOf(uint32_t v) const {
  if (parts_.size() == 1) return 0;
  const auto part = std::upper_bound(
      parts_.begin(), parts_.end(), v, [&](uint32_t node, const Part& p) {
        return node < (OfDevice(node) ? p.first_device : p.first_host);
      });
  return static_cast<uint32_t>(part - parts_.begin() - 1);
}

uint32_t Graph::NodeOf(uint32_t part, uint32_t own) const {
  const Part& p = parts_[part];
  return own < p.hosts ? p.first_host + own : p.first_device + own - p.hosts;
}

uint32_t Graph::OwnNode(uint32_t part, uint32_t v) const {
  const Part& p = parts_[part];
  if (OfDevice(v)) return v - p.first_device + p.hosts;
  return v < thread_begin_.back() ? v - p.first_host : kNoNode;
}

uint32_t Graph::NodeOfWork(uint32_t part, SliceId s) const {
  const Part& p = parts_[part];
  // Work stands in the order of the streams, and of the times in each.
  uint32_t row = (p.first_device - first_device_) / 2;
  const Trace& trace = p.model->trace();
  const uint32_t stream = p.model->stream(s);
  for (uint32_t i = 0; i < stream; ++i)
    row += static_cast<uint32_t>(trace.streams[i].slices.size());
  const auto& slices = trace.streams[stream].slices;
  const auto at = std::lower_bound(slices.begin(), slices.end(), s,
                                   [&](SliceId a, SliceId b) {
                                     return std::pair(trace.Start(a), a.value) <
                                            std::pair(trace.Start(b), b.value);
                                   });
  // Equal starts may stand in another order than that of the numbers.
  row +=
      static_cast<uint32_t>((at != slices.end() && *at == s
                                 ? at
                                 : std::find(slices.begin(), slices.end(), s)) -
                            slices.begin());
  return first_device_ + 2 * row;
}

uint32_t Graph::thread(uint32_t v) const {
  return static_cast<uint32_t>(
             std::upper_bound(thread_begin_.begin(), thread_begin_.end(), v) -
             thread_begin_.begin() - 1) -
         parts_[PartOf(v)].first_thread;
}

bool Graph::TakesPart(uint32_t v) const {
  if (OfDevice(v)) return true;
  // The node of a collective is of no thread.
  if (v >= thread_begin_.back()) return false;
  return parts_[PartOf(v)].model->threads()[thread(v)].takes_part;
}

bool Graph::BeforeTrace(uint32_t v) const {
  return std::binary_search(before_trace_.begin(), before_trace_.end(), v);
}

std::vector<uint32_t> Graph::SinksAt(std::span<const int64_t> times) const {
  const auto better = [&](uint32_t v, uint32_t than) {
    return than == kNoNode || std::pair(times_[v], position_[v]) >
                                  std::pair(times_[than], position_[than]);
  };
  // A few ranges of nodes: each has an answer for every time.
  constexpr size_t kRanges = 16;
  const size_t grain = nodes() / kRanges + 1;
  std::vector<std::vector<uint32_t>> found(kRanges);
  ParallelRanges(
      Threads(), nodes(), grain, [&](size_t begin, size_t end, size_t range) {
        std::vector<uint32_t>& sinks = found[range];
        sinks.assign(times.size(), kNoNode);
        // Times of a thread or stream follow each other: so do the answers.
        size_t at = 0;
        for (auto v = static_cast<uint32_t>(begin); v < end; ++v) {
          if ((at < times.size() && times[at] < times_[v]) ||
              (at > 0 && times[at - 1] >= times_[v]))
            at = static_cast<size_t>(
                std::lower_bound(times.begin(), times.end(), times_[v]) -
                times.begin());
          if (at < times.size() && better(v, sinks[at])) sinks[at] = v;
        }
      });
  std::vector<uint32_t> sinks(times.size(), kNoNode);
  for (const std::vector<uint32_t>& range : found) {
    for (size_t i = 0; i < range.size(); ++i) {
      if (range[i] != kNoNode && better(range[i], sinks[i]))
        sinks[i] = range[i];
    }
  }
  for (size_t i = 1; i < sinks.size(); ++i) {
    if (sinks[i] == kNoNode) sinks[i] = sinks[i - 1];
  }
  return sinks;
}

std::map<std::string, int64_t> Graph::EdgeCounts() const {
  std::map<std::string, int64_t> counts;
  std::array<int64_t, 17> sums{};
  for (uint32_t v = 0; v < nodes(); ++v) ++sums[static_cast<size_t>(chain_[v])];
  for (const Edge& edge : edges_) ++sums[static_cast<size_t>(edge.kind)];
  for (size_t k = 0; k + 1 < sums.size(); ++k) {
    if (sums[k] > 0)
      counts[std::string(EdgeKindName(static_cast<EdgeKind>(k)))] = sums[k];
  }
  return counts;
}

}  // namespace lamina::analysis::path
