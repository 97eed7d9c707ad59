// SPDX-License-Identifier: Apache-2.0
//
// The events of a recording as a graph of what had to happen before what.
//
// A node is a point in time: start or end of a host op or call, start or end of
// device work. An edge u -> v carries work w: v comes at least w after u. It is
// below zero where the two overlap. What is left over at v,
//   r(v) = t(v) - max over edges (t(u) + w) >= 0,
// is the residual, so that t(v) = max(t(u) + w) + r(v) holds by construction:
// with unchanged work all recorded times come back. The edge that reaches the
// maximum is the critical one; walking back along them gives the chain of last
// arrivals, which tiles the time without hole or overlap.
//
// Most edges join a point to the one before it on its thread, or the start of
// device work to its end: the chain edge of a node, whose source is the node
// with the number before it. It costs no entry of its own.
//
// Where the trace does not say what waited for what, an edge holds only in some
// of four readings (host::Reading):
//   best   the likeliest for each wait: the answer
//   low    every wait that the trace does not rule out exists, and what nothing
//          explains comes from outside
//   high   only waits that the recording needs exist
//   delay  as high, but a start that merely coincides with an end is a delay
// A node that comes from outside in a reading is pinned there: it does not move
// forward, v comes at max(t(v), max(t(u) + w)). The answers of all readings are
// the range of a what-if.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/host/model.h"
#include "base/pod_vector.h"

namespace lamina::analysis::path {

using host::HostModel;

// In the order in which ties between edges are decided.
enum class EdgeKind : uint8_t {
  kCompute,
  kComm,
  kCopy,
  kFill,
  kCollective,  // between ranks, see Graph::Join
  kHost,
  kHostGap,      // between two events of a thread
  kCall,         // the own work of a call that waits
  kOutside,      // in a frame that waits for others
  kOutsideWait,  // at the end of one that did: no work
  kAsleep,       // before a thread was woken by another: no work
  kOverlap,      // start to start, where work of a stream overlaps
  kOrder,        // of a stream or of a graph
  kLaunch,       // from the start of a call
  kSubmit,       // from its end
  kHandoff,      // from one thread to another
  kQueue,        // a place in the queue of a stream becomes free
  kSync,
  kPoll,
  kDependency,          // recorded
  kDependencyCall,      // a call makes the stream wait, not said for what
  kDependencyInferred,  // from times
  kDependencyPossible,  // not ruled out
  kNone,
};
inline constexpr size_t kEdgeKinds = 24;
std::string_view EdgeKindName(EdgeKind kind);

inline constexpr uint32_t kNoNode = 0xFFFFFFFF;
inline constexpr uint32_t kChain = 0xFFFFFFFE;  // as a critical edge

// There are as many as launches: 20 bytes, with work of up to 26 days. Times of
// a damaged trace can be further apart: more is left to the residual.
inline constexpr int64_t kMostWorkNs = (int64_t{1} << 51) - 1;

#pragma pack(push, 4)
struct Edge {
  uint32_t from = 0;
  uint32_t to = 0;
  int64_t work_ns : 52 = 0;
  EdgeKind kind : 7 = EdgeKind::kNone;
  uint8_t readings : 4 = host::kAllReadings;
  bool inferred : 1 = false;
  SliceId owner;

  bool In(uint8_t reading) const { return (readings & reading) != 0; }
};
#pragma pack(pop)
static_assert(sizeof(Edge) == 20);

// The readings by number.
inline constexpr size_t kReadings = 4;
constexpr uint8_t ReadingBit(size_t reading) {
  return static_cast<uint8_t>(1u << reading);
}

// A collective of one recording: its time is transfer and waiting for others
// that cannot be told apart.
struct Stretch {
  int64_t shortest_ns = 0;  // of its kind
  int64_t bound_ns = 0;     // what the link allows
};

// Edges by the node at which they end or begin, in their order. Most nodes have
// none: those cost a bit.
class EdgeLists {
 public:
  EdgeLists() = default;
  EdgeLists(size_t nodes, std::span<const Edge> edges, uint32_t Edge::*node);

  std::span<const uint32_t> Of(uint32_t v) const {
    if (!Has(v)) return {};
    const uint32_t i = Row(v);
    return {edges_.data() + begin_[i], edges_.data() + begin_[i + 1]};
  }
  // By the number that Row() gives.
  std::span<const uint32_t> OfRow(uint32_t row) const {
    return {edges_.data() + begin_[row], edges_.data() + begin_[row + 1]};
  }
  bool Has(uint32_t v) const {
    return (words_[v / 64].has >> (v % 64) & 1) != 0;
  }
  // The number of a node that has edges among those that do.
  uint32_t Row(uint32_t v) const {
    const Word& word = words_[v / 64];
    const uint64_t before = word.has & ((uint64_t{1} << (v % 64)) - 1);
    return word.before + static_cast<uint32_t>(std::popcount(before));
  }
  size_t rows() const { return begin_.size() - 1; }

 private:
  struct Word {
    uint64_t has = 0;  // a bit for each of 64 nodes
    uint32_t before = 0;
  };
  std::vector<Word> words_;
  PodVector<uint32_t> begin_;  // of edges_, by row; one more at the end
  PodVector<uint32_t> edges_;
};

class Graph;

// A recording among several, and how its times become those of a clock that
// all share; later times never become earlier ones.
struct JoinPart {
  const Graph* graph = nullptr;
  std::function<int64_t(int64_t)> clock;
};

// The work of one collective: part and slice of each rank that took part.
struct JoinedWork {
  std::vector<std::pair<uint32_t, SliceId>> members;
};

class Graph {
 public:
  static constexpr std::string_view kFact = "path graph";
  static Result<Graph> Of(const Context& context);

  static Graph Build(const HostModel& model);

  // Recordings of several ranks as one graph. A collective is a node of its
  // own: it is reached when the last rank has started, and each rank ends at
  // least the shortest duration of any rank later; its own start no longer
  // explains its end. Where the ends differ by more than 50 us, clocks or the
  // kind of collective do not allow that, and each rank keeps its own edge.
  // The graphs must outlive the result.
  static Graph Join(const std::vector<JoinPart>& parts,
                    const std::vector<JoinedWork>& collectives);

  // The recordings; one unless joined.
  size_t parts() const { return parts_.size(); }
  uint32_t PartOf(uint32_t v) const;
  // The node of a recording's own graph in this one, and the edge.
  uint32_t NodeOf(uint32_t part, uint32_t own) const;
  // The other way round; kNoNode for a collective, which is of no recording.
  uint32_t OwnNode(uint32_t part, uint32_t v) const;
  uint32_t EdgeOf(uint32_t part, uint32_t own) const {
    return parts_[part].first_edge + own;
  }
  // The edges that stand for the chain edge of the end of a collective.
  const absl::flat_hash_map<uint32_t, uint32_t>& collective_edges() const {
    return collective_edges_;
  }
  // What was joined: the node and its members.
  struct JoinedNode {
    uint32_t node = 0;
    JoinedWork work;
  };
  const std::vector<JoinedNode>& collectives() const { return collectives_; }

  size_t nodes() const { return times_.size(); }
  int64_t time(uint32_t v) const { return times_[v]; }

  // The chain edge of `v`, from v - 1; kNone if there is none.
  EdgeKind chain(uint32_t v) const { return chain_[v]; }
  // Nearly all take their whole time or none; the others have an entry.
  int64_t chain_work(uint32_t v) const {
    if (!chain_work_.empty()) return chain_work_[v];
    switch (chain_[v]) {
      case EdgeKind::kNone:
      case EdgeKind::kOutsideWait:
      case EdgeKind::kAsleep:
        return 0;
      case EdgeKind::kCall: {
        const auto it = call_work_.find(v);
        if (it != call_work_.end()) return it->second;
        break;
      }
      default:
        break;
    }
    return times_[v] - times_[v - 1];
  }
  SliceId owner(uint32_t v) const { return owner_[v]; }  // of the chain edge

  std::span<const Edge> edges() const { return edges_.span(); }
  std::span<const uint32_t> In(uint32_t v) const { return in_.Of(v); }
  std::span<const uint32_t> Out(uint32_t v) const { return out_.Of(v); }
  // The readings in which a node is pinned.
  uint8_t pinned(uint32_t v) const {
    if (pin_words_.empty() || (pin_words_[v / 64] >> (v % 64) & 1) == 0)
      return 0;
    return PinOf(v);
  }
  // Whether anything differs between the readings.
  bool doubtful() const { return doubtful_; }
  struct Pin {
    uint32_t node = 0;
    uint8_t readings = 0;
  };
  std::span<const Pin> pins() const { return pins_; }
  // Null: not a collective of one recording.
  const Stretch* stretch(uint32_t v) const {
    const auto it = stretch_.find(v);
    return it == stretch_.end() ? nullptr : &it->second;
  }
  const absl::flat_hash_map<uint32_t, Stretch>& stretches() const {
    return stretch_;
  }
  // What the device of device work does, by the clock of this graph.
  const host::Cover& busy(uint32_t v) const {
    const uint32_t part = PartOf(v);
    return busy_[part][model(part).device(Work(v))];
  }

  // In the reading `best`.
  // kNoNode: no predecessor; kChain; else a position in edges().
  uint32_t critical(uint32_t v) const {
    if (in_.Has(v)) return critical_[in_.Row(v)];
    return chain_[v] == EdgeKind::kNone ? kNoNode : kChain;
  }
  int64_t residual(uint32_t v) const;
  // In another one; `reading` is a number.
  int64_t residual(uint32_t v, size_t reading) const;

  // Nodes so that every edge points forward.
  std::span<const uint32_t> order() const { return order_.span(); }
  uint32_t position(uint32_t v) const { return position_[v]; }

  // Nodes of device work.
  bool OfDevice(uint32_t v) const { return v >= first_device_; }
  SliceId Work(uint32_t v) const { return work_[(v - first_device_) / 2]; }
  // Start node of device work of a part.
  uint32_t NodeOfWork(uint32_t part, SliceId s) const;
  // Start and end node of device work; in the order of the streams.
  uint32_t first_device() const { return first_device_; }
  std::span<const SliceId> work() const { return work_.span(); }
  // Whether a node's thread has ops or launches; true for device work.
  bool TakesPart(uint32_t v) const;
  // The first work of a stream: it may wait for something before the recording.
  bool BeforeTrace(uint32_t v) const;
  uint32_t thread(uint32_t v) const;  // of HostModel::threads() of its part
  // The nodes of a thread of a graph that is not joined, by time.
  std::pair<uint32_t, uint32_t> NodesOfThread(uint32_t thread) const {
    return {thread_begin_[thread], thread_begin_[thread + 1]};
  }

  // The first node of each thread of each part, and the one behind the last.
  std::span<const uint32_t> thread_begin() const { return thread_begin_; }

  // First and last time of so many nodes of device work each: where to look for
  // late ones.
  static constexpr uint32_t kDeviceBlock = 1024;
  struct Block {
    int64_t first_ns = 0, last_ns = 0;
  };
  std::span<const Block> device_blocks() const { return device_blocks_; }

  // Start of the first node that takes part, and the last such node.
  int64_t start_ns() const { return start_ns_; }
  uint32_t sink() const { return sink_; }
  // The last node at or before each time; kNoNode if there is none. The times
  // are sorted.
  std::vector<uint32_t> SinksAt(std::span<const int64_t> times) const;
  uint32_t SinkAt(int64_t time) const { return SinksAt({&time, 1})[0]; }

  const HostModel& model(uint32_t part = 0) const {
    return *parts_[part].model;
  }
  // What was counted, by name.
  const std::map<std::string, int64_t>& counts() const { return counts_; }
  // Edges by kind, chain edges included.
  std::map<std::string, int64_t> EdgeCounts() const;

  // Adds edges and makes order and critical edges anew.
  void Finish();
  // Whether a node is the end of a frame of Python or of a range, which are no
  // work of the run.
  bool OfFrame(uint32_t v) const;

 private:
  friend class GraphBuilder;
  int Threads() const { return model().context().settings.threads; }
  uint8_t PinOf(uint32_t v) const;
  void SetPins(std::vector<Pin> pins);
  void FindDoubt();
  void DropCircles();
  void MakeLists();
  bool MakeOrder();
  void MakeCritical();
  void FindEnds();
  // False: some of the collectives contradict each other; they are taken out.
  bool TryJoin(const std::vector<JoinPart>& parts,
               std::vector<JoinedWork>& collectives);

  struct Part {
    const HostModel* model = nullptr;
    uint32_t first_host = 0, hosts = 0;      // nodes
    uint32_t first_device = 0, devices = 0;  // nodes
    uint32_t first_thread = 0;               // of thread_begin_
    uint32_t first_edge = 0;
  };
  std::vector<Part> parts_;
  std::vector<JoinedNode> collectives_;
  absl::flat_hash_map<uint32_t, uint32_t> collective_edges_;
  PodVector<int64_t> times_;
  // Of a joined graph, whose clocks stretch it: the work of all chain edges.
  PodVector<int64_t> chain_work_;
  // Of calls that wait: where they take longer than their own work.
  absl::flat_hash_map<uint32_t, int64_t> call_work_;
  absl::flat_hash_map<uint32_t, Stretch> stretch_;  // by end node
  std::vector<Pin> pins_;                           // by node
  std::vector<uint64_t> pin_words_;                 // a bit for each node
  std::vector<uint32_t> frames_;                    // nodes of frames, sorted
  std::vector<std::vector<host::Cover>> busy_;      // by part and device
  bool doubtful_ = false;
  PodVector<EdgeKind> chain_;
  PodVector<SliceId> owner_;
  PodVector<Edge> edges_;
  EdgeLists in_, out_;
  PodVector<uint32_t> critical_;  // by row of in_
  PodVector<uint32_t> order_, position_;
  PodVector<SliceId> work_;
  std::vector<uint32_t> thread_begin_;  // first node of each thread
  std::vector<uint32_t> before_trace_;  // sorted
  std::vector<Block> device_blocks_;
  uint32_t first_device_ = 0;
  int64_t start_ns_ = 0;
  uint32_t sink_ = kNoNode;
  std::map<std::string, int64_t> counts_;
};

}  // namespace lamina::analysis::path
