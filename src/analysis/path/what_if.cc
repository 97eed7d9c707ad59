// SPDX-License-Identifier: Apache-2.0
#include "analysis/path/what_if.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/stop.h"

namespace lamina::analysis::path {
namespace {

constexpr size_t kBits = 64;  // of a word of marks
constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
constexpr size_t kLowLane = 1;

int64_t Part(int64_t work, double part) {
  return static_cast<int64_t>(static_cast<double>(work) * part);
}

}  // namespace

Saved RangeOf(const ByReading& saved) {
  const auto [low, high] = std::minmax_element(saved.begin(), saved.end());
  return {saved[0], *low, *high};
}

void Scenario::Add(const Scenario& other) {
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(chains, other.chains);
  append(edges, other.edges);
  append(unexplained, other.unexplained);
  append(dropped, other.dropped);
  append(collectives, other.collectives);
  append(peers, other.peers);
}

std::array<double, 4> PeersOf(double far, bool unchanged_in_best) {
  return {unchanged_in_best ? 1.0 : (1 + far) / 2, 1.0, far, far};
}

ByReading StretchedWork(const Stretch& stretch, int64_t work, int64_t over,
                        int64_t under, const std::array<double, 4>& peers) {
  const auto scaled = [&](int64_t ns) {
    return static_cast<int64_t>(static_cast<__int128>(ns) * over / under);
  };
  ByReading out{};
  for (size_t lane = 0; lane < kReadings; ++lane) {
    const int64_t base = lane == 0          ? stretch.shortest_ns
                         : lane == kLowLane ? stretch.bound_ns
                                            : work;
    out[lane] = base >= work ? scaled(work)
                             : scaled(base) + Part(work - base, peers[lane]);
  }
  return out;
}

ByReading WaitingWork(const Stretch& stretch, int64_t work,
                      const std::array<double, 4>& peers) {
  ByReading out{};
  for (size_t lane = 0; lane < kReadings; ++lane) {
    const int64_t base =
        std::min(work, lane == 0 ? stretch.shortest_ns : stretch.bound_ns);
    out[lane] = base + (peers[lane] == 1 ? work - base
                                         : Part(work - base, peers[lane]));
  }
  return out;
}

Outcome::Outcome(const Graph& graph, const Scenario& scenario, Pass pass)
    : graph_(graph),
      lanes_(graph.doubtful() ? kReadings : 1),
      more_chain_(graph.nodes()),
      more_edge_(graph.edges().size()),
      later_(graph.nodes() * lanes_),
      unexplained_(graph.nodes()),
      dropped_(graph.edges().size()),
      marked_(graph.nodes() / kBits + 1),
      first_change_(static_cast<uint32_t>(graph.nodes())) {
  LookForStop();
  for (const auto& [v, work] : scenario.chains) {
    more_chain_[v] = work - graph.chain_work(v);
    Mark(v);
  }
  for (const auto* list : {&scenario.collectives, &scenario.peers}) {
    for (const auto& [v, work] : *list) {
      collectives_[v] = work;
      Mark(v);
    }
  }
  for (const auto& [e, work] : scenario.edges) {
    more_edge_[e] = work - graph.edges()[e].work_ns;
    Mark(graph.edges()[e].to);
  }
  for (const uint32_t v : scenario.unexplained) {
    unexplained_[v] = true;
    Mark(v);
  }
  for (const uint32_t e : scenario.dropped) {
    dropped_[e] = true;
    Mark(graph.edges()[e].to);
  }
  if (pass == Pass::kFull) {
    Full();
  } else {
    Touched();
  }
}

int64_t Outcome::chain_work(uint32_t v, size_t reading) const {
  if (!collectives_.empty()) {
    const auto it = collectives_.find(v);
    if (it != collectives_.end()) return it->second[reading];
  }
  return graph_.chain_work(v) + more_chain_[v];
}

void Outcome::Mark(uint32_t v) {
  const uint32_t at = graph_.position(v);
  marked_[at / kBits] |= uint64_t{1} << (at % kBits);
  first_change_ = std::min(first_change_, at);
}

template <size_t kLanes>
bool Outcome::MoveIn(uint32_t v) {
  // The latest arrival of each reading, as recorded and now.
  std::array<int64_t, kLanes> was, now;
  const bool chain = graph_.chain(v) != EdgeKind::kNone;
  if (chain) {
    const int64_t work = graph_.chain_work(v);
    const int64_t before = graph_.time(v - 1);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      was[lane] = before + work;
      now[lane] =
          before + later_[(v - 1) * kLanes + lane] + chain_work(v, lane);
    }
  } else {
    was.fill(kNone);
    now.fill(kNone);
  }
  for (const uint32_t e : graph_.In(v)) {
    const Edge& edge = graph_.edges()[e];
    const int64_t before = graph_.time(edge.from);
    const int64_t recorded = before + edge.work_ns;
    const bool gone = dropped_[e];
    for (size_t lane = 0; lane < kLanes; ++lane) {
      if (kLanes > 1 && !edge.In(ReadingBit(lane))) continue;
      was[lane] = std::max(was[lane], recorded);
      if (!gone) {
        now[lane] =
            std::max(now[lane], recorded + more_edge_[e] +
                                    later_[size_t{edge.from} * kLanes + lane]);
      }
    }
  }
  const uint8_t pinned = graph_.pinned(v);
  const bool explained = unexplained_[v];
  bool moved = false;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    int64_t& later = later_[size_t{v} * kLanes + lane];
    if (now[lane] == kNone) continue;
    const int64_t time = graph_.time(v);
    if ((pinned & ReadingBit(lane)) != 0) {
      later = std::max<int64_t>(0, now[lane] - time);
    } else if (explained) {
      later = now[lane] - time;
    } else {
      later = now[lane] - was[lane];
    }
    moved = moved || later != 0;
  }
  return moved;
}

bool Outcome::Move(uint32_t v) {
  ++touched_;
  if (!(lanes_ == 1 ? MoveIn<1>(v) : MoveIn<kReadings>(v))) return false;
  moved_.push_back(v);
  return true;
}

// Edges point forward: what a node marks stands behind it.
void Outcome::Touched() {
  const auto nodes = static_cast<uint32_t>(graph_.nodes());
  for (size_t word = first_change_ / kBits; word < marked_.size(); ++word) {
    while (marked_[word] != 0) {
      const auto bit = static_cast<size_t>(std::countr_zero(marked_[word]));
      marked_[word] &= marked_[word] - 1;
      const uint32_t v = graph_.order()[word * kBits + bit];
      if (!Move(v)) continue;
      if (v + 1 < nodes && graph_.chain(v + 1) != EdgeKind::kNone) Mark(v + 1);
      for (const uint32_t e : graph_.Out(v)) Mark(graph_.edges()[e].to);
    }
  }
}

void Outcome::Full() {
  const auto moves = [&](uint32_t v) {
    for (size_t lane = 0; lane < lanes_; ++lane) {
      if (later_[size_t{v} * lanes_ + lane] != 0) return true;
    }
    return false;
  };
  for (uint32_t at = 0; at < graph_.nodes(); ++at) {
    const uint32_t v = graph_.order()[at];
    bool look = (marked_[at / kBits] >> (at % kBits) & 1) != 0;
    if (graph_.chain(v) != EdgeKind::kNone) look = look || moves(v - 1);
    for (const uint32_t e : graph_.In(v))
      look = look || moves(graph_.edges()[e].from);
    if (look) Move(v);
  }
}

namespace {

// The latest time in each of `lanes` readings, time(v, lane), of the nodes that
// take part and were recorded up to the time of the sink.
template <class Time>
ByReading EndsOf(const Graph& graph, uint32_t sink, size_t lanes,
                 const Time& time) {
  const int64_t recorded = graph.time(sink);
  ByReading ends{};
  for (size_t lane = 0; lane < lanes; ++lane) ends[lane] = time(sink, lane);
  const auto see = [&](uint32_t v) {
    bool later = false;
    for (size_t lane = 0; lane < lanes; ++lane)
      later = later || time(v, lane) > ends[lane];
    if (!later || graph.time(v) > recorded || !graph.TakesPart(v) ||
        graph.OfFrame(v))
      return;
    for (size_t lane = 0; lane < lanes; ++lane)
      ends[lane] = std::max(ends[lane], time(v, lane));
  };
  const auto threads = graph.thread_begin();
  for (size_t t = 0; t + 1 < threads.size(); ++t) {
    // The last node of a thread up to then is the latest in all readings.
    auto v = threads[t + 1];
    while (v > threads[t] && graph.time(v - 1) > recorded) --v;
    while (v > threads[t] && graph.OfFrame(v - 1)) --v;
    if (v > threads[t]) see(v - 1);
  }
  for (auto v = graph.first_device(); v < graph.nodes(); ++v) see(v);
  for (size_t lane = lanes; lane < kReadings; ++lane) ends[lane] = ends[0];
  return ends;
}

}  // namespace

ByReading Outcome::Ends(uint32_t sink) const {
  return EndsOf(graph_, sink, lanes_,
                [&](uint32_t v, size_t lane) { return time(v, lane); });
}

namespace {

// New work of chain edges if a class takes half as long.
struct HalfWork {
  const Graph& graph;
  Half half;
  std::array<double, 4> peers;

  bool Changes(EdgeKind kind) const {
    switch (kind) {
      case EdgeKind::kHost:
      case EdgeKind::kHostGap:
      case EdgeKind::kCall:
        return half == Half::kHost;
      case EdgeKind::kCompute:
        return half == Half::kCompute;
      case EdgeKind::kComm:
        return true;  // or its waiting for others
      default:
        return false;
    }
  }
  ByReading Of(uint32_t v, EdgeKind kind) const {
    const int64_t work = graph.chain_work(v);
    const Stretch* const stretch =
        kind == EdgeKind::kComm ? graph.stretch(v) : nullptr;
    if (stretch != nullptr) {
      return half == Half::kComm ? StretchedWork(*stretch, work, 1, 2, peers)
                                 : WaitingWork(*stretch, work, peers);
    }
    const int64_t now =
        kind == EdgeKind::kComm && half != Half::kComm ? work : work / 2;
    return {now, now, now, now};
  }
};

template <size_t kLanes>
ByReading SavedIn(const Graph& graph, const HalfWork& half, uint32_t node) {
  // By node and reading: what it comes before its time. Each is written in its
  // turn.
  PodVector<int64_t> earlier;
  earlier.AppendUninitialized(graph.nodes() * kLanes);
  for (const uint32_t v : graph.order()) {
    const EdgeKind chain = graph.chain(v);
    int64_t* const own = &earlier[size_t{v} * kLanes];
    std::array<int64_t, kLanes> less{};  // of the work of the chain edge
    if (half.Changes(chain)) {
      const int64_t work = graph.chain_work(v);
      const ByReading now = half.Of(v, chain);
      for (size_t lane = 0; lane < kLanes; ++lane)
        less[lane] = work - now[lane];
    }
    const auto in = graph.In(v);
    const uint8_t pinned = graph.pinned(v);
    if (in.empty() && pinned == 0) {
      // Of most nodes: nothing but the chain leads to them.
      for (size_t lane = 0; lane < kLanes; ++lane) {
        own[lane] = 0;
        if (chain != EdgeKind::kNone)
          own[lane] = earlier[(size_t{v} - 1) * kLanes + lane] + less[lane];
      }
    } else {
      std::array<int64_t, kLanes> was, now;
      was.fill(kNone);
      now.fill(kNone);
      if (chain != EdgeKind::kNone) {
        const int64_t arrival = graph.time(v - 1) + graph.chain_work(v);
        for (size_t lane = 0; lane < kLanes; ++lane) {
          was[lane] = arrival;
          now[lane] =
              arrival - earlier[(size_t{v} - 1) * kLanes + lane] - less[lane];
        }
      }
      for (const uint32_t e : in) {
        const Edge& edge = graph.edges()[e];
        const int64_t arrival = graph.time(edge.from) + edge.work_ns;
        for (size_t lane = 0; lane < kLanes; ++lane) {
          if (kLanes > 1 && !edge.In(ReadingBit(lane))) continue;
          was[lane] = std::max(was[lane], arrival);
          now[lane] = std::max(
              now[lane], arrival - earlier[size_t{edge.from} * kLanes + lane]);
        }
      }
      for (size_t lane = 0; lane < kLanes; ++lane) {
        own[lane] = now[lane] == kNone ? 0
                    : (pinned & ReadingBit(lane)) != 0
                        ? std::min<int64_t>(0, graph.time(v) - now[lane])
                        : was[lane] - now[lane];
      }
    }
  }
  ByReading saved = EndsOf(graph, node, kLanes, [&](uint32_t v, size_t lane) {
    return graph.time(v) - earlier[size_t{v} * kLanes + lane];
  });
  for (int64_t& ns : saved) ns = graph.time(node) - ns;
  return saved;
}

}  // namespace

Saved SavedByHalf(const Graph& graph, Half half, uint32_t node) {
  const HalfWork work{
      graph, half,
      PeersOf(half == Half::kComm ? 1.0 : 0.5, half == Half::kHost)};
  uint32_t first = 0;
  while (first < graph.nodes() && !work.Changes(graph.chain(first))) ++first;
  if (first == graph.nodes()) return {};
  return RangeOf(graph.doubtful() ? SavedIn<kReadings>(graph, work, node)
                                  : SavedIn<1>(graph, work, node));
}

uint32_t Outcome::critical(uint32_t v) const {
  int64_t best = 0;
  EdgeKind kind = EdgeKind::kNone;
  uint32_t critical = kNoNode;
  if (graph_.chain(v) != EdgeKind::kNone) {
    best = time(v - 1) + chain_work(v);
    kind = graph_.chain(v);
    critical = kChain;
  }
  for (const uint32_t e : graph_.In(v)) {
    const Edge& edge = graph_.edges()[e];
    if (dropped(e) || !edge.In(host::kBest)) continue;
    const int64_t arrival = time(edge.from) + work(e);
    if (critical == kNoNode || arrival > best ||
        (arrival == best && edge.kind < kind)) {
      best = arrival;
      kind = edge.kind;
      critical = e;
    }
  }
  return critical;
}

}  // namespace lamina::analysis::path
