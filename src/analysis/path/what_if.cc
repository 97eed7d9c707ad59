// SPDX-License-Identifier: Apache-2.0
#include "analysis/path/what_if.h"

#include <algorithm>
#include <array>
#include <queue>

namespace lamina::analysis::path {

Outcome::Outcome(const Graph& graph, const Scenario& scenario, Pass pass)
    : graph_(graph) {
  constexpr size_t kFew = 16;
  const bool dense = scenario.chains.size() > graph.nodes() / kFew;
  if (dense) {
    chain_work_.resize(graph.nodes());
    for (uint32_t v = 0; v < graph.nodes(); ++v)
      chain_work_[v] = graph.chain_work(v);
  }
  for (const auto& [v, work] : scenario.chains) {
    if (dense) {
      chain_work_[v] = work;
    } else {
      chains_[v] = work;
    }
    seeds_.push_back(v);
  }
  for (const auto& [e, work] : scenario.edges) {
    edges_[e] = work;
    seeds_.push_back(graph.edges()[e].to);
  }
  for (const auto& [v, residual] : scenario.residuals) {
    residuals_[v] = residual;
    seeds_.push_back(v);
  }
  for (const uint32_t e : scenario.dropped) {
    dropped_[e] = true;
    seeds_.push_back(graph.edges()[e].to);
  }
  first_change_ = static_cast<uint32_t>(graph.nodes());
  for (const uint32_t v : seeds_)
    first_change_ = std::min(first_change_, graph.position(v));
  // A heap costs more per node than a pass over all of them.
  const bool full =
      pass == Pass::kFull ||
      (pass == Pass::kAuto && seeds_.size() > graph.nodes() / kFew);
  if (full) {
    Full();
  } else {
    Touched();
  }
}

int64_t Outcome::residual(uint32_t v) const {
  const auto it = residuals_.find(v);
  return it == residuals_.end() ? graph_.residual(v) : it->second;
}

int64_t Outcome::chain_work(uint32_t v) const {
  if (!chain_work_.empty()) return chain_work_[v];
  const auto it = chains_.find(v);
  return it == chains_.end() ? graph_.chain_work(v) : it->second;
}

int64_t Outcome::work(uint32_t e) const {
  const auto it = edges_.find(e);
  return it == edges_.end() ? graph_.edges()[e].work_ns : it->second;
}

template <class TimeOf>
bool Outcome::Arrival(uint32_t v, const TimeOf& time_of, int64_t& best) const {
  bool any = false;
  if (graph_.chain(v) != EdgeKind::kNone) {
    best = time_of(v - 1) + chain_work(v);
    any = true;
  }
  for (const uint32_t e : graph_.In(v)) {
    if (!dropped_.empty() && dropped(e)) continue;
    const int64_t arrival = time_of(graph_.edges()[e].from) + work(e);
    if (!any || arrival > best) best = arrival;
    any = true;
  }
  return any;
}

void Outcome::Touched() {
  using Entry = std::pair<uint32_t, uint32_t>;  // position, node
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
  absl::flat_hash_map<uint32_t, bool> seen;
  const auto push = [&](uint32_t v) {
    if (seen.try_emplace(v, true).second) heap.emplace(graph_.position(v), v);
  };
  for (const uint32_t v : seeds_) push(v);
  const auto nodes = static_cast<uint32_t>(graph_.nodes());
  while (!heap.empty()) {
    const uint32_t v = heap.top().second;
    heap.pop();
    ++touched_;
    int64_t t = graph_.time(v);
    if (Arrival(
            v, [&](uint32_t u) { return time(u); }, t))
      t += residual(v);
    if (t == graph_.time(v)) continue;
    new_[v] = t;
    if (v + 1 < nodes && graph_.chain(v + 1) != EdgeKind::kNone) push(v + 1);
    for (const uint32_t e : graph_.Out(v)) push(graph_.edges()[e].to);
  }
}

void Outcome::Full() {
  std::vector<int64_t> times(graph_.nodes());
  std::vector<bool> seed(graph_.nodes(), false);
  for (const uint32_t v : seeds_) seed[v] = true;
  for (const uint32_t v : graph_.order()) {
    bool moved = seed[v];
    if (graph_.chain(v) != EdgeKind::kNone)
      moved = moved || times[v - 1] != graph_.time(v - 1);
    for (const uint32_t e : graph_.In(v)) {
      const uint32_t u = graph_.edges()[e].from;
      moved = moved || times[u] != graph_.time(u);
    }
    int64_t t = graph_.time(v);
    if (moved) {
      ++touched_;
      if (Arrival(
              v, [&](uint32_t u) { return times[u]; }, t))
        t += residual(v);
    }
    times[v] = t;
  }
  times_ = std::move(times);
}

int64_t Outcome::LatestUpTo(int64_t recorded, int64_t least) const {
  const auto see = [&](uint32_t v, int64_t t) {
    if (t > least && graph_.time(v) <= recorded && graph_.TakesPart(v))
      least = t;
  };
  for (const auto& [v, t] : new_) see(v, t);
  // Most nodes are not later than that: no look at what changed.
  for (uint32_t v = 0; v < graph_.nodes(); ++v) {
    if (!times_.empty()) {
      see(v, times_[v]);
    } else if (graph_.time(v) > least && graph_.time(v) <= recorded) {
      see(v, time(v));
    }
  }
  return least;
}

int64_t TimeWithHalf(const Graph& graph, std::initializer_list<EdgeKind> kinds,
                     uint32_t node) {
  std::array<bool, static_cast<size_t>(EdgeKind::kNone) + 1> half{};
  for (const EdgeKind kind : kinds) half[static_cast<size_t>(kind)] = true;
  PodVector<int64_t> times;
  times.resize(graph.nodes());
  for (const uint32_t v : graph.order()) {
    int64_t best = 0;
    bool any = false;
    const EdgeKind chain = graph.chain(v);
    if (chain != EdgeKind::kNone) {
      const int64_t work = graph.chain_work(v);
      best =
          times[v - 1] + (half[static_cast<size_t>(chain)] ? work / 2 : work);
      any = true;
    }
    for (const uint32_t e : graph.In(v)) {
      const Edge& edge = graph.edges()[e];
      const int64_t arrival = times[edge.from] + edge.work_ns;
      if (!any || arrival > best) best = arrival;
      any = true;
    }
    times[v] = any ? best + graph.residual(v) : graph.time(v);
    if (v == node) break;
  }
  return times[node];
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
