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

// Of each thread that takes part the last node that was recorded up to the time
// of the sink: it stays the latest of the thread.
std::vector<uint32_t> EndsOfThreads(const Graph& graph, uint32_t sink) {
  const int64_t recorded = graph.time(sink);
  const auto threads = graph.thread_begin();
  std::vector<uint32_t> found;
  for (size_t t = 0; t + 1 < threads.size(); ++t) {
    auto v = threads[t + 1];
    while (v > threads[t] && graph.time(v - 1) > recorded) --v;
    while (v > threads[t] && graph.OfFrame(v - 1)) --v;
    if (v > threads[t] && graph.TakesPart(v - 1)) found.push_back(v - 1);
  }
  return found;
}

}  // namespace

ByReading Outcome::Ends(uint32_t sink) const {
  const int64_t recorded = graph_.time(sink);
  ByReading ends{};
  const auto see = [&](uint32_t v) {
    for (size_t lane = 0; lane < lanes_; ++lane)
      ends[lane] = std::max(ends[lane], time(v, lane));
  };
  for (size_t lane = 0; lane < lanes_; ++lane) ends[lane] = time(sink, lane);
  for (const uint32_t v : EndsOfThreads(graph_, sink)) see(v);
  for (const uint32_t v : moved_) {
    if (graph_.OfDevice(v) && graph_.time(v) <= recorded) see(v);
  }
  // What did not move, where it may come later than that.
  const auto blocks = graph_.device_blocks();
  for (size_t b = 0; b < blocks.size(); ++b) {
    const int64_t least =
        *std::min_element(ends.begin(), ends.begin() + lanes_);
    if (blocks[b].last_ns <= least || blocks[b].first_ns > recorded) continue;
    const auto begin =
        graph_.first_device() + static_cast<uint32_t>(b) * Graph::kDeviceBlock;
    const uint32_t end = std::min(static_cast<uint32_t>(graph_.nodes()) - begin,
                                  Graph::kDeviceBlock) +
                         begin;
    for (uint32_t v = begin; v < end; ++v) {
      if (graph_.time(v) > least && graph_.time(v) <= recorded) see(v);
    }
  }
  for (size_t lane = lanes_; lane < kReadings; ++lane) ends[lane] = ends[0];
  return ends;
}

namespace {

// What all nodes come before their time if a class takes half as long, for
// several classes and all readings in one pass. A node's values are needed
// until what waits for it has its own: they stand in slots that are used again,
// few enough for a cache.
template <size_t kLanes>
class HalvesPass {
 public:
  HalvesPass(const Graph& graph, std::span<const Half> halves, uint32_t sink)
      : graph_(graph), halves_(halves), sink_(sink) {
    for (const Half half : halves_) {
      peers_.push_back(
          PeersOf(half == Half::kComm ? 1.0 : 0.5, half == Half::kHost));
    }
    slot_.AppendUninitialized(graph.nodes());
    seen_.resize(graph.nodes() / kBits + 1);
    for (const uint32_t v : EndsOfThreads(graph, sink)) See(v);
    See(sink);
    ends_.fill(kNone);
  }

  std::vector<Saved> Run() {
    for (const uint32_t v : graph_.order()) Place(v);
    std::vector<Saved> found;
    for (size_t half = 0; half < halves_.size(); ++half) {
      ByReading saved;
      for (size_t lane = 0; lane < kReadings; ++lane) {
        saved[lane] =
            graph_.time(sink_) - ends_[half * kLanes + (kLanes > 1 ? lane : 0)];
      }
      found.push_back(RangeOf(saved));
    }
    return found;
  }

 private:
  using Earlier = std::array<int64_t, kHalves * kLanes>;
  struct Slot {
    Earlier earlier;
    size_t open;  // nodes that still need it
  };

  void See(uint32_t v) { seen_[v / kBits] |= uint64_t{1} << (v % kBits); }

  // What the work of a chain edge is less by.
  void Shorten(uint32_t v, EdgeKind kind, Earlier& earlier) const {
    const bool host = kind == EdgeKind::kHost || kind == EdgeKind::kHostGap ||
                      kind == EdgeKind::kCall;
    const bool comm = kind == EdgeKind::kComm;
    if (!host && !comm && kind != EdgeKind::kCompute) return;
    const Stretch* const stretch = comm ? graph_.stretch(v) : nullptr;
    const int64_t work = graph_.chain_work(v);
    for (size_t i = 0; i < halves_.size(); ++i) {
      const Half half = halves_[i];
      int64_t* const own = &earlier[i * kLanes];
      if (stretch != nullptr) {
        const ByReading now =
            half == Half::kComm ? StretchedWork(*stretch, work, 1, 2, peers_[i])
                                : WaitingWork(*stretch, work, peers_[i]);
        for (size_t lane = 0; lane < kLanes; ++lane)
          own[lane] += work - now[lane];
      } else if (half == (host   ? Half::kHost
                          : comm ? Half::kComm
                                 : Half::kCompute)) {
        for (size_t lane = 0; lane < kLanes; ++lane)
          own[lane] += work - work / 2;
      }
    }
  }

  void Place(uint32_t v) {
    const EdgeKind chain = graph_.chain(v);
    const auto in = graph_.In(v);
    const uint8_t pinned = graph_.pinned(v);
    const size_t open =
        graph_.Out(v).size() +
        (v + 1 < graph_.nodes() && graph_.chain(v + 1) != EdgeKind::kNone);
    if (in.empty() && pinned == 0 && chain != EdgeKind::kNone) {
      // Of most nodes: nothing but the chain leads to them.
      const uint32_t before = slot_[v - 1];
      if (slots_[before].open == 1) {
        Slot& slot = slots_[before];
        Shorten(v, chain, slot.earlier);
        Ends(v, slot.earlier);
        slot.open = open;
        slot_[v] = before;
        if (open == 0) free_.push_back(before);
        return;
      }
      Earlier own = slots_[before].earlier;
      Release(before);
      Shorten(v, chain, own);
      Keep(v, own, open);
      return;
    }
    Earlier own{};
    if (!in.empty() || chain != EdgeKind::kNone) Arrive(v, in, pinned, own);
    Keep(v, own, open);
  }

  void Arrive(uint32_t v, std::span<const uint32_t> in, uint8_t pinned,
              Earlier& own) {
    std::array<int64_t, kLanes> was;
    Earlier now;
    was.fill(kNone);
    now.fill(kNone);
    const size_t halves = halves_.size();
    if (graph_.chain(v) != EdgeKind::kNone) {
      const int64_t arrival = graph_.time(v - 1) + graph_.chain_work(v);
      Shorten(v, graph_.chain(v), own);
      was.fill(arrival);
      const uint32_t slot = slot_[v - 1];
      for (size_t i = 0; i < halves * kLanes; ++i)
        now[i] = arrival - slots_[slot].earlier[i] - own[i];
      Release(slot);
    }
    for (const uint32_t e : in) {
      const Edge& edge = graph_.edges()[e];
      const int64_t arrival = graph_.time(edge.from) + edge.work_ns;
      const uint32_t slot = slot_[edge.from];
      const Earlier& earlier = slots_[slot].earlier;
      for (size_t lane = 0; lane < kLanes; ++lane) {
        if (kLanes > 1 && !edge.In(ReadingBit(lane))) continue;
        was[lane] = std::max(was[lane], arrival);
        for (size_t i = lane; i < halves * kLanes; i += kLanes)
          now[i] = std::max(now[i], arrival - earlier[i]);
      }
      Release(slot);
    }
    for (size_t i = 0; i < halves * kLanes; ++i) {
      const size_t lane = i % kLanes;
      own[i] = now[i] == kNone ? 0
               : (pinned & ReadingBit(lane)) != 0
                   ? std::min<int64_t>(0, graph_.time(v) - now[i])
                   : was[lane] - now[i];
    }
  }

  void Keep(uint32_t v, const Earlier& own, size_t open) {
    Ends(v, own);
    if (open == 0) return;
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(slots_.size()));
      slots_.push_back(Slot());
    }
    slot_[v] = free_.back();
    free_.pop_back();
    slots_[slot_[v]] = {own, open};
  }
  void Release(uint32_t slot) {
    if (--slots_[slot].open == 0) free_.push_back(slot);
  }

  // The latest new times of what ends before the sink.
  void Ends(uint32_t v, const Earlier& own) {
    const bool seen = (seen_[v / kBits] >> (v % kBits) & 1) != 0;
    if (!seen && (!graph_.OfDevice(v) || graph_.time(v) > graph_.time(sink_)))
      return;
    for (size_t i = 0; i < halves_.size() * kLanes; ++i)
      ends_[i] = std::max(ends_[i], graph_.time(v) - own[i]);
  }

  const Graph& graph_;
  const std::span<const Half> halves_;
  const uint32_t sink_;
  std::vector<std::array<double, 4>> peers_;  // by half
  PodVector<uint32_t> slot_;                  // by node, while it is needed
  PodVector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::vector<uint64_t> seen_;  // nodes of the host that may be the end
  Earlier ends_;
};

}  // namespace

std::array<Saved, kHalves> SavedByHalves(const Graph& graph, uint32_t node) {
  std::array<bool, kEdgeKinds> any{};
  for (uint32_t v = 0; v < graph.nodes(); ++v)
    any[static_cast<size_t>(graph.chain(v))] = true;
  const auto has = [&](EdgeKind kind) {
    return any[static_cast<size_t>(kind)];
  };
  // Collectives of one rank wait for others, which change as well.
  const bool comm = has(EdgeKind::kComm);
  std::vector<Half> halves;
  if (comm || has(EdgeKind::kHost) || has(EdgeKind::kHostGap) ||
      has(EdgeKind::kCall))
    halves.push_back(Half::kHost);
  if (comm || has(EdgeKind::kCompute)) halves.push_back(Half::kCompute);
  if (comm) halves.push_back(Half::kComm);
  std::array<Saved, kHalves> saved{};
  if (halves.empty()) return saved;
  const std::vector<Saved> found =
      graph.doubtful() ? HalvesPass<kReadings>(graph, halves, node).Run()
                       : HalvesPass<1>(graph, halves, node).Run();
  for (size_t i = 0; i < halves.size(); ++i)
    saved[static_cast<size_t>(halves[i])] = found[i];
  return saved;
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
