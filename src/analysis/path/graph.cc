// SPDX-License-Identifier: Apache-2.0
//
// What a graph is besides the events that it was built of (graph_build.cc):
// several recordings joined, the order of its nodes, its critical edges.
#include "analysis/path/graph.h"

#include <algorithm>
#include <array>

#include "base/parallel.h"
#include "base/status.h"

namespace lamina::analysis::path {

std::string_view EdgeKindName(EdgeKind kind) {
  static constexpr std::array<std::string_view, kEdgeKinds> kNames = {
      "compute",
      "comm",
      "copy",
      "fill",
      "collective",
      "host",
      "host_gap",
      "call",
      "outside",
      "outside_wait",
      "asleep",
      "overlap",
      "order",
      "launch",
      "submit",
      "handoff",
      "queue",
      "sync",
      "poll",
      "dependency",
      "dependency_call",
      "dependency_inferred",
      "dependency_possible",
      ""};
  return kNames[static_cast<size_t>(kind)];
}

bool Graph::TryJoin(const std::vector<JoinPart>& parts,
                    std::vector<JoinedWork>& collectives) {
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
  std::vector<Pin> pins;
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
    const auto part = static_cast<uint32_t>(i);
    for (const uint32_t v : from.before_trace_)
      before_trace_.push_back(NodeOf(part, v));
    for (const uint32_t v : from.frames_) frames_.push_back(NodeOf(part, v));
    for (const Pin& pin : from.pins_)
      pins.push_back({NodeOf(part, pin.node), pin.readings});
    for (const auto& [v, stretch] : from.stretch_)
      stretch_[NodeOf(part, v)] = stretch;
    busy_.emplace_back();
    for (const host::Cover& busy : from.busy_[0]) {
      std::vector<Interval> intervals;
      for (const Interval& interval : busy.intervals()) {
        intervals.push_back({parts[i].clock(interval.start_ns),
                             parts[i].clock(interval.end_ns)});
      }
      busy_.back().emplace_back(std::move(intervals));
    }
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
  std::sort(frames_.begin(), frames_.end());

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
    int64_t together = 0, first_end = 0;
    for (const auto& [part, slice] : collectives[c].members) {
      const uint32_t v = NodeOfWork(part, slice);
      const int64_t end = times_[v + 1];
      const bool first = starts.empty();
      together = first ? times_[v] : std::max(together, times_[v]);
      first_end = first ? end : std::min(first_end, end);
      starts.push_back(v);
    }
    times_[node] = together;
    if (starts.size() < 2) continue;
    if (first_end < together) {
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
      stretch_.erase(v + 1);
      add(node, v + 1, first_end - together, owner_[v + 1]);
    }
  }
  SetPins(std::move(pins));
  MakeLists();
  FindDoubt();
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

// Edges between nodes of one circle go; chain edges alone have none. Tarjan's
// method finds the nodes that reach each other.
void Graph::DropCircles() {
  const auto n = static_cast<uint32_t>(nodes());
  std::vector<bool> placed(n, false);
  for (const uint32_t v : order_) placed[v] = true;
  std::vector<uint32_t> number(n, 0), low(n, 0), circle(n, 0);
  std::vector<bool> open(n, false);
  std::vector<uint32_t> stack;
  uint32_t next = 0, circles = 0;
  struct Frame {
    uint32_t node;
    size_t edge;  // of those that leave it, the chain edge first
  };
  std::vector<Frame> frames;
  const auto enter = [&](uint32_t v) {
    number[v] = low[v] = ++next;
    open[v] = true;
    stack.push_back(v);
    frames.push_back({v, 0});
  };
  for (uint32_t root = 0; root < n; ++root) {
    if (placed[root] || number[root] != 0) continue;
    enter(root);
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const uint32_t v = frame.node;
      const auto out = Out(v);
      if (frame.edge <= out.size()) {
        const size_t i = frame.edge++;
        uint32_t to = kNoNode;
        if (i > 0) {
          to = edges_[out[i - 1]].to;
        } else if (v + 1 < n && chain_[v + 1] != EdgeKind::kNone) {
          to = v + 1;
        }
        if (to == kNoNode || placed[to]) continue;
        if (number[to] == 0) {
          enter(to);
        } else if (open[to]) {
          low[v] = std::min(low[v], number[to]);
        }
        continue;
      }
      if (low[v] == number[v]) {
        ++circles;
        uint32_t u = kNoNode;
        do {
          u = stack.back();
          stack.pop_back();
          open[u] = false;
          circle[u] = circles;
        } while (u != v);
      }
      frames.pop_back();
      if (!frames.empty()) {
        const uint32_t u = frames.back().node;
        low[u] = std::min(low[u], low[v]);
      }
    }
  }
  const auto kept = static_cast<size_t>(
      std::remove_if(edges_.begin(), edges_.end(),
                     [&](const Edge& e) {
                       return !placed[e.from] && !placed[e.to] &&
                              circle[e.from] == circle[e.to];
                     }) -
      edges_.begin());
  LAMINA_CHECK(kept < edges_.size());
  counts_["edges_in_circles"] += static_cast<int64_t>(edges_.size() - kept);
  edges_.resize(kept);
}

void Graph::Finish() {
  bool ordered = false;
  ParallelFor(Threads(), 2, [&](size_t i) {
    if (i == 0) ordered = MakeOrder();
    if (i == 1) MakeCritical();
  });
  if (ordered) return;
  DropCircles();
  MakeLists();
  LAMINA_CHECK(MakeOrder());
  MakeCritical();
}

uint8_t Graph::PinOf(uint32_t v) const {
  const auto it = std::lower_bound(
      pins_.begin(), pins_.end(), v,
      [](const Pin& pin, uint32_t node) { return pin.node < node; });
  return it->readings;
}

void Graph::SetPins(std::vector<Pin> pins) {
  std::sort(pins.begin(), pins.end(),
            [](const Pin& a, const Pin& b) { return a.node < b.node; });
  pins_ = std::move(pins);
  if (pins_.empty()) return;
  pin_words_.assign(nodes() / 64 + 1, 0);
  for (const Pin& pin : pins_)
    pin_words_[pin.node / 64] |= uint64_t{1} << (pin.node % 64);
}

void Graph::FindDoubt() {
  doubtful_ = !pins_.empty() || !stretch_.empty() ||
              std::any_of(edges_.begin(), edges_.end(), [](const Edge& e) {
                return e.readings != host::kAllReadings;
              });
}

bool Graph::OfFrame(uint32_t v) const {
  return !frames_.empty() &&
         std::binary_search(frames_.begin(), frames_.end(), v);
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
      if (!edge.In(host::kBest)) continue;
      const int64_t arrival = times_[edge.from] + edge.work_ns;
      if (critical == kNoNode || arrival > best ||
          (arrival == best && edge.kind < kind)) {
        best = arrival;
        kind = edge.kind;
        critical = e;
      }
    }
    critical_[row++] = critical;
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

int64_t Graph::residual(uint32_t v, size_t reading) const {
  bool any = chain_[v] != EdgeKind::kNone;
  int64_t best = any ? times_[v - 1] + chain_work(v) : 0;
  for (const uint32_t e : In(v)) {
    const Edge& edge = edges_[e];
    if (!edge.In(ReadingBit(reading))) continue;
    const int64_t arrival = times_[edge.from] + edge.work_ns;
    if (!any || arrival > best) best = arrival;
    any = true;
  }
  return any ? times_[v] - best : 0;
}

void Graph::FindEnds() {
  bool any = false;
  const auto see = [&](uint32_t begin, uint32_t end) {
    for (uint32_t v = begin; v < end; ++v) {
      if (!frames_.empty() && OfFrame(v)) continue;
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
  const auto end = static_cast<uint32_t>(nodes());
  see(first_device_, end);
  device_blocks_.clear();
  for (uint32_t v = first_device_; v < end; ++v) {
    if ((v - first_device_) % kDeviceBlock == 0)
      device_blocks_.push_back({times_[v], times_[v]});
    Block& block = device_blocks_.back();
    block.first_ns = std::min(block.first_ns, times_[v]);
    block.last_ns = std::max(block.last_ns, times_[v]);
  }
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
  std::array<int64_t, kEdgeKinds> sums{};
  for (uint32_t v = 0; v < nodes(); ++v) ++sums[static_cast<size_t>(chain_[v])];
  for (const Edge& edge : edges_) ++sums[static_cast<size_t>(edge.kind)];
  for (size_t k = 0; k + 1 < sums.size(); ++k) {
    if (sums[k] > 0)
      counts[std::string(EdgeKindName(static_cast<EdgeKind>(k)))] = sums[k];
  }
  return counts;
}

}  // namespace lamina::analysis::path
