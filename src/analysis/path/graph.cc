// SPDX-License-Identifier: Apache-2.0
//
// Building the graph: host points, the baton between threads, device work,
// waits; then the order and the critical edges. Linear after sorting.
#include "analysis/path/graph.h"

#include <algorithm>
#include <array>
#include <list>
#include <queue>

#include "base/parallel.h"
#include "base/run_sort.h"
#include "base/status.h"

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
      : m_(model), trace_(model.trace()), g_(graph) {}

  void Run() {
    size_t host = 0;
    for (const host::Thread& thread : m_.threads())
      host += thread.events.size();
    const size_t device = trace_.device_slices().size();
    LAMINA_CHECK(2 * (host + m_.calls().size() + device) < kChain);
    const size_t nodes = 2 * (host + device) + Slow();
    g_.times_.reserve(nodes);
    g_.chain_.reserve(nodes);
    g_.owner_.reserve(nodes);
    // Of each device event that behind it on its stream, and its launch.
    g_.edges_.reserve(2 * device + m_.waits().size());
    start_.assign(m_.calls().size(), kNoNode);
    end_.assign(m_.calls().size(), kNoNode);
    submit_.assign(m_.calls().size(), kNoNode);
    waits_.assign(m_.waits().size(), kNoNode);
    for (uint32_t t = 0; t < m_.threads().size(); ++t) Thread(t);
    g_.thread_begin_.push_back(Size());
    Batons();
    Device();
    Syncs();
    g_.parts_.push_back({&m_, 0, g_.first_device_, g_.first_device_,
                         Size() - g_.first_device_, 0, 0});
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
    uint32_t thread = 0;
  };
  struct Open {
    SliceId slice;
    int64_t end = 0;
    uint32_t call = host::kNone;
    uint32_t wait = host::kNone;
    bool blocking = false;
  };

  uint32_t Size() const { return static_cast<uint32_t>(g_.times_.size()); }
  size_t Slow() const {
    return static_cast<size_t>(
        std::count_if(m_.calls().begin(), m_.calls().end(),
                      [](const Call& c) { return c.slow; }));
  }

  uint32_t Node(int64_t time, EdgeKind kind, SliceId owner) {
    g_.times_.push_back(time);
    g_.chain_.push_back(kind);
    g_.owner_.push_back(owner);
    return Size() - 1;
  }

  void AddEdge(uint32_t from, uint32_t to, int64_t work, EdgeKind kind,
               SliceId owner, bool inferred = false) {
    const int64_t dt = g_.times_[to] - g_.times_[from];
    if (dt < 0) {
      ++g_.counts_["edges_against_time"];
      return;
    }
    Edge edge;
    edge.from = from;
    edge.to = to;
    edge.work_ns = std::clamp(std::min(work, dt), -kMostWorkNs, kMostWorkNs);
    edge.owner = owner;
    edge.kind = kind;
    edge.inferred = inferred;
    g_.edges_.push_back(edge);
  }

  // --- host ---
  void Thread(uint32_t t) {
    const host::Thread& thread = m_.threads()[t];
    g_.thread_begin_.push_back(Size());
    open_.clear();
    blocking_ = 0;
    first_of_thread_ = true;
    size_t wait = 0;
    Top top;
    const auto close_one = [&] {
      const Open o = open_.back();
      const bool has_submit =
          o.call != host::kNone &&
          m_.calls()[o.call].submit_ns > trace_.Start(o.slice);
      if (has_submit) {
        const int64_t submit = m_.calls()[o.call].submit_ns;
        if (g_.times_.back() <= submit && submit <= o.end)
          submit_[o.call] = Point(submit);
      }
      const uint32_t node = Point(o.end);
      if (o.call != host::kNone) end_[o.call] = node;
      if (o.wait != host::kNone) waits_[o.wait] = node;
      if (o.blocking) --blocking_;
      open_.pop_back();
      if (open_.empty() && thread.takes_part) {
        top.end = o.end;
        top.end_node = node;
        tops_.push_back(top);
      }
    };
    for (const SliceId s : thread.events) {
      const int64_t start = trace_.Start(s);
      while (!open_.empty() && open_.back().end <= start) close_one();
      Open o;
      o.slice = s;
      o.end = trace_.End(s);
      if (!open_.empty() && open_.back().end < o.end) {
        ++g_.counts_["host_bleed_clamped"];
        o.end = open_.back().end;
      }
      const uint32_t node = Point(start);
      o.call = m_.CallOf(s);
      if (o.call != host::kNone) start_[o.call] = node;
      if (wait < thread.waits.size() &&
          m_.waits()[thread.waits[wait]].slice == s) {
        o.wait = thread.waits[wait++];
        o.blocking = m_.waits()[o.wait].target.valid();
        if (o.blocking) ++blocking_;
      }
      if (open_.empty()) {
        top = Top();
        top.start = start;
        top.node = node;
        top.thread = t;
      }
      open_.push_back(o);
    }
    while (!open_.empty()) close_one();
  }

  // A point of the thread behind the one before it.
  uint32_t Point(int64_t time) {
    if (first_of_thread_) {
      first_of_thread_ = false;
      return Node(time, EdgeKind::kNone, {});
    }
    const int64_t last = g_.times_.back();
    const int64_t dt = time - last;
    if (open_.empty()) return Node(time, EdgeKind::kHostGap, {});
    const Open& own = open_.back();
    if (own.call != host::kNone && m_.calls()[own.call].staged) {
      const SliceId copy = m_.Work(m_.calls()[own.call])[0];
      const int64_t work =
          std::max<int64_t>(0, std::min(dt, trace_.Start(copy) - last));
      const uint32_t node = Node(time, EdgeKind::kHost, own.slice);
      if (work != dt) g_.staged_work_[node] = work;
      return node;
    }
    if (blocking_ > 0) return Node(time, EdgeKind::kSyncWait, own.slice);
    return Node(time, EdgeKind::kHost, own.slice);
  }

  // A thread that resumes after others went idle was woken by the last of
  // them.
  void Batons() {
    // Thread by thread, and by time in each.
    RunSort(tops_, m_.context().settings.threads,
            [](const Top& a, const Top& b) {
              return a.start != b.start ? a.start < b.start : a.node < b.node;
            });
    struct Stop {
      int64_t time;
      uint32_t node;
      uint32_t thread;
    };
    const auto later = [](const Stop& a, const Stop& b) {
      return a.time != b.time ? a.time > b.time : a.node > b.node;
    };
    std::priority_queue<Stop, std::vector<Stop>, decltype(later)> ends(later);
    std::list<Stop> idle;  // by the time they became idle
    std::vector<std::list<Stop>::iterator> place(m_.threads().size(),
                                                 idle.end());
    const auto leave = [&](uint32_t thread) {
      if (place[thread] == idle.end()) return;
      idle.erase(place[thread]);
      place[thread] = idle.end();
    };
    for (const Top& top : tops_) {
      while (!ends.empty() && ends.top().time <= top.start) {
        const Stop stop = ends.top();
        ends.pop();
        leave(stop.thread);
        place[stop.thread] = idle.insert(idle.end(), stop);
      }
      const bool was_idle = place[top.thread] != idle.end();
      const int64_t mine = was_idle ? place[top.thread]->time : 0;
      leave(top.thread);
      if (!idle.empty() && (!was_idle || idle.back().time > mine)) {
        const bool gap = g_.chain_[top.node] == EdgeKind::kHostGap;
        if (!gap || g_.times_[top.node] - g_.times_[top.node - 1] > kAsleepNs) {
          if (gap) g_.chain_[top.node] = EdgeKind::kHostAsleep;
          AddEdge(idle.back().node, top.node, 0, EdgeKind::kBaton, {});
          ++g_.counts_["batons"];
        }
      }
      ends.push({top.end, top.end_node, top.thread});
    }
    std::vector<Top>().swap(tops_);
  }

  // --- device ---
  uint32_t StartNode(SliceId s) const {
    return g_.first_device_ + 2 * place_[trace_.slices.detail[s.value]];
  }
  uint32_t EndNode(SliceId s) const { return StartNode(s) + 1; }

  void Device() {
    g_.first_device_ = Size();
    place_.assign(trace_.device.size(), 0);
    g_.work_.reserve(trace_.device_slices().size());
    for (const trace::Stream& stream : trace_.streams) {
      for (const SliceId s : stream.slices) {
        place_[trace_.slices.detail[s.value]] =
            static_cast<uint32_t>(g_.work_.size());
        g_.work_.push_back(s);
        Node(trace_.Start(s), EdgeKind::kNone, {});
        Node(trace_.End(s), KindOf(m_.kind(s)), s);
      }
    }
    for (uint32_t i = 0; i < trace_.streams.size(); ++i) Stream(i);
    std::sort(g_.before_trace_.begin(), g_.before_trace_.end());
  }

  void Stream(uint32_t i) {
    const host::StreamFacts& facts = m_.facts(i);
    size_t near = 0;         // of the last inferred wait
    SliceId previous, last;  // last: of the running maximum of the ends
    for (const SliceId s : trace_.streams[i].slices) {
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
        AddEdge(EndNode(last), node, gap, EdgeKind::kStreamOrder, s);
        explained = trace_.End(last) + std::min(gap, start - trace_.End(last));
      } else if (previous.valid()) {
        AddEdge(StartNode(previous), node, 0, EdgeKind::kStreamOverlap, s);
      }
      if (c != host::kNone && !same) {
        const Call& call = m_.calls()[c];
        const uint32_t from = submit_[c] == kNoNode ? start_[c] : submit_[c];
        AddEdge(from, node, m_.Ready(s) - g_.times_[from], EdgeKind::kLaunch,
                s);
        if (call.staged)
          AddEdge(node, end_[c], trace_.End(call.slice) - start,
                  EdgeKind::kCopy, s);
        explained = std::max(explained, std::min(start, m_.Ready(s)));
      }
      for (const auto& [waits, on] : m_.Dependencies(s)) {
        AddEdge(EndNode(on), node, 0, EdgeKind::kDependency, s);
        explained = std::max(explained, trace_.End(on));
      }
      if (!previous.valid() && c != host::kNone &&
          start - explained > host::kMaxLatencyNs)
        g_.before_trace_.push_back(node);
      if (explained != trace::kNoInt && c != host::kNone &&
          start - explained > host::kDelayNs) {
        const SliceId source = m_.Infer(s, explained, &near);
        if (source.valid()) {
          AddEdge(EndNode(source), node, 0, EdgeKind::kDependencyInferred, s,
                  true);
          ++g_.counts_["dependencies_inferred"];
        }
      }
      previous = s;
      if (!last.valid() || trace_.End(s) >= trace_.End(last)) last = s;
    }
  }

  void Syncs() {
    const auto& waits = m_.waits();
    for (size_t w = 0; w < waits.size(); ++w) {
      if (waits[w].target.valid() && waits_[w] != kNoNode)
        AddEdge(EndNode(waits[w].target), waits_[w], 0, EdgeKind::kSync,
                waits[w].slice, waits[w].inferred);
    }
    for (size_t w = 0; w < waits.size(); ++w) {
      for (const SliceId k : m_.Sources(waits[w])) {
        if (k != waits[w].target && waits_[w] != kNoNode)
          AddEdge(EndNode(k), waits_[w], 0, EdgeKind::kSync, waits[w].slice,
                  waits[w].inferred);
      }
    }
  }

  const HostModel& m_;
  const Trace& trace_;
  Graph& g_;
  std::vector<uint32_t> start_, end_, submit_;  // nodes of calls
  std::vector<uint32_t> waits_;                 // end nodes of waits
  std::vector<uint32_t> place_;  // by row of device arguments: of work_
  std::vector<Top> tops_;
  std::vector<Open> open_;
  int blocking_ = 0;
  bool first_of_thread_ = true;
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
    work_.insert(work_.end(), from.work_.begin(), from.work_.end());
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
    Edge& edge = edges_.emplace_back();
    edge.from = from;
    edge.to = to;
    edge.work_ns = std::clamp(work, -kMostWorkNs, kMostWorkNs);
    edge.owner = owner;
    edge.kind = EdgeKind::kCollective;
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

EdgeLists::EdgeLists(size_t nodes, const std::vector<Edge>& edges,
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
    if (i == 0) in_ = EdgeLists(nodes(), edges_, &Edge::to);
    if (i == 1) out_ = EdgeLists(nodes(), edges_, &Edge::from);
  });
}

// Kahn's method, first come first served. False: there is a cycle.
bool Graph::MakeOrder() {
  const auto n = static_cast<uint32_t>(nodes());
  PodVector<uint32_t>& open = position_;  // predecessors that are not placed
  open.clear();
  open.resize(n, 0);
  order_.clear();
  order_.reserve(n);
  for (uint32_t v = 0; v < n; ++v) {
    open[v] = static_cast<uint32_t>(In(v).size()) +
              (chain_[v] == EdgeKind::kNone ? 0 : 1);
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
  for (uint32_t i = 0; i < n; ++i) position_[order_[i]] = i;
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
    counts_["edges_in_circles"] +=
        static_cast<int64_t>(std::erase_if(edges_, [&](const Edge& e) {
          return !placed[e.from] && !placed[e.to];
        }));
    MakeLists();
    LAMINA_CHECK(MakeOrder());
    MakeCritical();
  }
}

void Graph::MakeCritical() {
  const auto n = static_cast<uint32_t>(nodes());
  critical_.resize(in_.rows());
  for (uint32_t v = 0; v < n; ++v) {
    int64_t best = 0;
    EdgeKind kind = EdgeKind::kNone;
    uint32_t critical = kNoNode;
    if (chain_[v] != EdgeKind::kNone) {
      best = times_[v - 1] + chain_work(v);
      kind = chain_[v];
      critical = kChain;
    }
    // A chain edge is older than every other one of its kind.
    for (const uint32_t e : In(v)) {
      const Edge& edge = edges_[e];
      const int64_t arrival = times_[edge.from] + edge.work_ns;
      if (critical == kNoNode || arrival > best ||
          (arrival == best && edge.kind < kind)) {
        best = arrival;
        kind = edge.kind;
        critical = e;
      }
    }
    if (in_.Has(v)) critical_[in_.Row(v)] = critical;
    LAMINA_CHECK(critical == kNoNode || best <= times_[v]);
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
  std::vector<uint32_t> sinks(times.size(), kNoNode);
  const auto better = [&](uint32_t v, uint32_t than) {
    return than == kNoNode || std::pair(times_[v], position_[v]) >
                                  std::pair(times_[than], position_[than]);
  };
  // Times of a thread or stream follow each other: so do the answers.
  size_t at = 0;
  for (uint32_t v = 0; v < nodes(); ++v) {
    if ((at < times.size() && times[at] < times_[v]) ||
        (at > 0 && times[at - 1] >= times_[v]))
      at = static_cast<size_t>(
          std::lower_bound(times.begin(), times.end(), times_[v]) -
          times.begin());
    if (at < times.size() && better(v, sinks[at])) sinks[at] = v;
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
