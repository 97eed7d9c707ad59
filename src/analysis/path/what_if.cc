// SPDX-License-Identifier: Apache-2.0
#include "analysis/path/what_if.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "base/stop.h"

namespace lamina::analysis::path {
namespace {

constexpr size_t kBits = 64;  // of a word of marks

}  // namespace

Outcome::Outcome(const Graph& graph, const Scenario& scenario, Pass pass)
    : graph_(graph),
      more_chain_(graph.nodes()),
      more_edge_(graph.edges().size()),
      more_residual_(graph.nodes()),
      later_(graph.nodes()),
      dropped_(graph.edges().size()),
      marked_(graph.nodes() / kBits + 1),
      first_change_(static_cast<uint32_t>(graph.nodes())) {
  LookForStop();
  for (const auto& [v, work] : scenario.chains) {
    more_chain_[v] = work - graph.chain_work(v);
    Mark(v);
  }
  for (const auto& [e, work] : scenario.edges) {
    more_edge_[e] = work - graph.edges()[e].work_ns;
    Mark(graph.edges()[e].to);
  }
  for (const auto& [v, residual] : scenario.residuals) {
    more_residual_[v] = residual - graph.residual(v);
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

void Outcome::Mark(uint32_t v) {
  const uint32_t at = graph_.position(v);
  marked_[at / kBits] |= uint64_t{1} << (at % kBits);
  first_change_ = std::min(first_change_, at);
}

bool Outcome::Arrival(uint32_t v, int64_t& best) const {
  bool any = false;
  if (graph_.chain(v) != EdgeKind::kNone) {
    best = time(v - 1) + chain_work(v);
    any = true;
  }
  for (const uint32_t e : graph_.In(v)) {
    if (dropped(e)) continue;
    const int64_t arrival = time(graph_.edges()[e].from) + work(e);
    if (!any || arrival > best) best = arrival;
    any = true;
  }
  return any;
}

bool Outcome::Move(uint32_t v) {
  ++touched_;
  int64_t arrival = 0;
  if (!Arrival(v, arrival)) return false;
  later_[v] = arrival + residual(v) - graph_.time(v);
  if (later_[v] == 0) return false;
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
  for (uint32_t at = 0; at < graph_.nodes(); ++at) {
    const uint32_t v = graph_.order()[at];
    bool look = (marked_[at / kBits] >> (at % kBits) & 1) != 0;
    if (graph_.chain(v) != EdgeKind::kNone) look = look || later_[v - 1] != 0;
    for (const uint32_t e : graph_.In(v))
      look = look || later_[graph_.edges()[e].from] != 0;
    if (look) Move(v);
  }
}

int64_t Outcome::LatestUpTo(int64_t recorded, int64_t least) const {
  const auto see = [&](uint32_t v) {
    if (graph_.time(v) <= recorded && time(v) > least && graph_.TakesPart(v))
      least = time(v);
  };
  for (const uint32_t v : moved_) see(v);
  // Of the others those recorded after `least`. The nodes of a thread stand by
  // time, those of a stream do not.
  const auto threads = graph_.thread_begin();
  for (size_t t = 0; t + 1 < threads.size(); ++t) {
    for (uint32_t v = threads[t + 1]; v-- > threads[t];) {
      if (graph_.time(v) <= least) break;
      see(v);
    }
  }
  for (auto v = graph_.first_device(); v < graph_.nodes(); ++v) {
    if (graph_.time(v) > least) see(v);
  }
  return least;
}

int64_t TimeWithHalf(const Graph& graph, std::initializer_list<EdgeKind> kinds,
                     uint32_t node) {
  std::array<bool, static_cast<size_t>(EdgeKind::kNone) + 1> half{};
  for (const EdgeKind kind : kinds) half[static_cast<size_t>(kind)] = true;
  uint32_t first = 0;
  while (first < graph.nodes() &&
         !half[static_cast<size_t>(graph.chain(first))])
    ++first;
  if (first == graph.nodes()) return graph.time(node);
  PodVector<int64_t> earlier;  // by node: what it comes before its time
  earlier.AppendUninitialized(graph.nodes());  // each is written in its turn
  for (const uint32_t v : graph.order()) {
    const EdgeKind chain = graph.chain(v);
    int64_t less = 0;  // of the work of the chain edge
    if (half[static_cast<size_t>(chain)]) {
      const int64_t work = graph.chain_work(v);
      less = work - work / 2;
    }
    if (graph.In(v).empty()) {
      // Of most nodes: nothing but the chain leads to them.
      earlier[v] = chain == EdgeKind::kNone ? 0 : earlier[v - 1] + less;
    } else {
      int64_t best = std::numeric_limits<int64_t>::min();
      if (chain != EdgeKind::kNone)
        best = graph.time(v - 1) - earlier[v - 1] + graph.chain_work(v) - less;
      for (const uint32_t e : graph.In(v)) {
        const Edge& edge = graph.edges()[e];
        best = std::max(
            best, graph.time(edge.from) - earlier[edge.from] + edge.work_ns);
      }
      earlier[v] = graph.time(v) - best - graph.residual(v);
    }
    if (v == node) break;
  }
  return graph.time(node) - earlier[node];
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
    if (dropped(e)) continue;
    const Edge& edge = graph_.edges()[e];
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
