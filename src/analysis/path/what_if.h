// SPDX-License-Identifier: Apache-2.0
//
// What the end of the run would be if some work took another time, some edge
// were gone, or some wait that nothing explains did not happen. Everything else
// is kept: the order of work on threads and streams, waits that nothing
// explains, host work that is not named. An answer is no promise.
//
// A scenario names edges: a cross edge by its position in Graph::edges(), the
// chain edge of a node by the node. Changes are followed forward through the
// nodes that they move, in all readings at once; nothing else is looked at.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "analysis/path/graph.h"
#include "base/status.h"

namespace lamina::analysis::path {

// By reading: best, low, high, delay.
using ByReading = std::array<int64_t, kReadings>;

// A number of nanoseconds in each reading; of what is saved: the answer and the
// range that the readings give.
struct Saved {
  int64_t best_ns = 0;
  int64_t low_ns = 0;
  int64_t high_ns = 0;
};
Saved RangeOf(const ByReading& saved);

struct Scenario {
  std::vector<std::pair<uint32_t, int64_t>> chains;  // node, new work
  std::vector<std::pair<uint32_t, int64_t>> edges;   // edge, new work
  std::vector<uint32_t> unexplained;  // nodes without their residual
  std::vector<uint32_t> dropped;      // edges
  // Collectives of one recording, whose time differs between the readings:
  // node, new work. Those that are changed, and those that wait for ranks that
  // change though they are in no file.
  std::vector<std::pair<uint32_t, ByReading>> collectives, peers;

  size_t size() const {
    return chains.size() + edges.size() + unexplained.size() + dropped.size() +
           collectives.size() + peers.size();
  }
  // Adds what another one changes.
  void Add(const Scenario& other);
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

  // In the reading `best`, as far as no other is named.
  int64_t time(uint32_t v, size_t reading = 0) const {
    return graph_.time(v) + later_[v * lanes_ + (lanes_ > 1 ? reading : 0)];
  }
  int64_t residual(uint32_t v) const {
    return unexplained_[v] ? 0 : graph_.residual(v);
  }
  int64_t chain_work(uint32_t v, size_t reading = 0) const;
  int64_t work(uint32_t e) const {
    return graph_.edges()[e].work_ns + more_edge_[e];
  }
  bool dropped(uint32_t e) const { return dropped_[e]; }
  uint32_t critical(uint32_t v) const;
  // Nodes that had to be looked at.
  size_t touched() const { return touched_; }
  // Below this position of the order everything is as recorded.
  uint32_t first_change() const { return first_change_; }
  // The latest new time, in each reading, of the nodes that take part and were
  // recorded up to the time of the sink.
  ByReading Ends(uint32_t sink) const;

 private:
  // Finds the new times of `v`; false: it did not move.
  bool Move(uint32_t v);
  template <size_t kLanes>
  bool MoveIn(uint32_t v);
  void Mark(uint32_t v);
  void Touched();
  void Full();

  const Graph& graph_;
  const size_t lanes_;  // readings that differ
  // What is added to work and times.
  Zeros<int64_t> more_chain_, more_edge_, later_;
  Zeros<bool> unexplained_, dropped_;
  absl::flat_hash_map<uint32_t, ByReading> collectives_;
  std::vector<uint64_t> marked_;  // positions to look at, a bit for each
  PodVector<uint32_t> moved_;     // nodes
  size_t touched_ = 0;
  uint32_t first_change_ = 0;
};

// What is saved of the time of `node` if the work of a class takes half as
// long, by class: one pass over the nodes for all.
enum class Half : uint8_t { kHost, kCompute, kComm };
inline constexpr size_t kHalves = 3;
std::array<Saved, kHalves> SavedByHalves(const Graph& graph, uint32_t node);

// From the text of a what-if (docs/host.md):
//   scale:kernel~RE:F  scale:op~RE:F  scale:host~RE:F  scale:class=NAME:F
//   bandwidth:copy=GBPS  bandwidth:comm=GBPS  drop:sync[~RE]
//   graph:step=N  graph:run=STREAM/RUN  fuse:SEQUENCE
//   zero:launch  zero:gaps
// Errors: a text of no such form, a pattern that matches nothing.
Result<Scenario> ParseScenario(const Graph& graph, const std::string& text);

// What a collective of one recording takes in each reading if its transfer
// takes `over` / `under` of its time and the others that it waits for change by
// `peers`, each between 0 and 1.
ByReading StretchedWork(const Stretch& stretch, int64_t work, int64_t over,
                        int64_t under, const std::array<double, 4>& peers);
// The same for one that only waits for others.
ByReading WaitingWork(const Stretch& stretch, int64_t work,
                      const std::array<double, 4>& peers);
// How much the waiting for ranks that are in no file changes in each reading,
// if their work changes by `far`.
std::array<double, 4> PeersOf(double far, bool unchanged_in_best);

}  // namespace lamina::analysis::path
