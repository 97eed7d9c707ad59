// SPDX-License-Identifier: Apache-2.0
//
// What the end of the run would be if some work took another time, some edge
// were gone, or some wait that nothing explains did not happen. Everything else
// is kept: the order of work on threads and streams, waits that nothing
// explains, host work that is not named. An answer is no promise.
//
// A scenario names edges: a cross edge by its position in Graph::edges(), the
// chain edge of a node by the node. Few changes are followed forward through
// the nodes that they move; many are answered by one pass over all nodes. Both
// give the same times.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "analysis/path/graph.h"
#include "base/status.h"

namespace lamina::analysis::path {

struct Scenario {
  std::vector<std::pair<uint32_t, int64_t>> chains;     // node, new work
  std::vector<std::pair<uint32_t, int64_t>> edges;      // edge, new work
  std::vector<std::pair<uint32_t, int64_t>> residuals;  // node, new residual
  std::vector<uint32_t> dropped;                        // edges

  size_t size() const {
    return chains.size() + edges.size() + residuals.size() + dropped.size();
  }
};

// Times of a scenario.
class Outcome {
 public:
  // How to compute it; both are equal.
  enum class Pass { kAuto, kTouched, kFull };

  Outcome(const Graph& graph, const Scenario& scenario,
          Pass pass = Pass::kAuto);

  int64_t time(uint32_t v) const {
    if (!times_.empty()) return times_[v];
    const auto it = new_.find(v);
    return it == new_.end() ? graph_.time(v) : it->second;
  }
  int64_t residual(uint32_t v) const;
  int64_t chain_work(uint32_t v) const;
  int64_t work(uint32_t e) const;
  bool dropped(uint32_t e) const { return dropped_.contains(e); }
  uint32_t critical(uint32_t v) const;
  // Nodes that had to be looked at.
  size_t touched() const { return touched_; }
  // Below this position of the order everything is as recorded.
  uint32_t first_change() const { return first_change_; }
  // The latest new time of the nodes that take part and were recorded up to
  // this time; `least` if none is later.
  int64_t LatestUpTo(int64_t recorded, int64_t least) const;

 private:
  // The latest arrival at `v`; false: it has no predecessor.
  template <class TimeOf>
  bool Arrival(uint32_t v, const TimeOf& time_of, int64_t& best) const;
  void Touched();
  void Full();

  const Graph& graph_;
  absl::flat_hash_map<uint32_t, int64_t> chains_, edges_, residuals_, new_;
  absl::flat_hash_map<uint32_t, bool> dropped_;
  // Of a full pass: all times, and the work of all chain edges.
  std::vector<int64_t> times_, chain_work_;
  std::vector<uint32_t> seeds_;
  size_t touched_ = 0;
  uint32_t first_change_ = 0;
};

// When a node comes if the work of all chain edges of these kinds takes half as
// long: one pass over the nodes, 8 bytes for each while it lasts.
int64_t TimeWithHalf(const Graph& graph, std::initializer_list<EdgeKind> kinds,
                     uint32_t node);

// A scenario from its text (docs/host.md):
//   scale:kernel~RE:F  scale:op~RE:F  scale:host~RE:F  scale:class=NAME:F
//   bandwidth:copy=GBPS  bandwidth:comm=GBPS  drop:sync[~RE]
//   graph:step=N  graph:run=STREAM/RUN  fuse:SEQUENCE
//   zero:launch  zero:gaps
// Errors: a text of no such form, a pattern that matches nothing.
Result<Scenario> ParseScenario(const Graph& graph, const std::string& text);

}  // namespace lamina::analysis::path
