// SPDX-License-Identifier: Apache-2.0
//
// What the end of the run would be if some work took another time, some edge
// were gone, or some wait that nothing explains did not happen. Everything else
// is kept: the order of work on threads and streams, waits that nothing
// explains, host work that is not named. An answer is no promise.
//
// A scenario names edges: a cross edge by its position in Graph::edges(), the
// chain edge of a node by the node. Changes are followed forward through the
// nodes that they move; nothing else is looked at.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <new>
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

// Zeros, of which only those take memory and time that are used: the pages of
// a large array are given when they are written.
template <class T>
class Zeros {
 public:
  explicit Zeros(size_t count)
      : data_(static_cast<T*>(std::calloc(count, sizeof(T))), &std::free) {
    if (data_ == nullptr && count > 0) throw std::bad_alloc();
  }
  T& operator[](size_t i) { return data_.get()[i]; }
  const T& operator[](size_t i) const { return data_.get()[i]; }

 private:
  std::unique_ptr<T, void (*)(void*)> data_;
};

// Times of a scenario.
class Outcome {
 public:
  // How to compute it: along the nodes that move, or by a look at all of them.
  // Both are equal; the second is there to check the first.
  enum class Pass { kTouched, kFull };

  Outcome(const Graph& graph, const Scenario& scenario,
          Pass pass = Pass::kTouched);

  int64_t time(uint32_t v) const { return graph_.time(v) + later_[v]; }
  int64_t residual(uint32_t v) const {
    return graph_.residual(v) + more_residual_[v];
  }
  int64_t chain_work(uint32_t v) const {
    return graph_.chain_work(v) + more_chain_[v];
  }
  int64_t work(uint32_t e) const {
    return graph_.edges()[e].work_ns + more_edge_[e];
  }
  bool dropped(uint32_t e) const { return dropped_[e]; }
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
  bool Arrival(uint32_t v, int64_t& best) const;
  // Finds the new time of `v`; false: it did not move.
  bool Move(uint32_t v);
  void Mark(uint32_t v);
  void Touched();
  void Full();

  const Graph& graph_;
  // What is added to work, residuals and times.
  Zeros<int64_t> more_chain_, more_edge_, more_residual_, later_;
  Zeros<bool> dropped_;
  std::vector<uint64_t> marked_;  // positions to look at, a bit for each
  PodVector<uint32_t> moved_;     // nodes
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
