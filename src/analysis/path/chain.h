// SPDX-License-Identifier: Apache-2.0
//
// The chain of last arrivals through a graph, as segments that tile a window,
// for the recorded times or for those of a scenario.
#pragma once

#include <absl/functional/function_ref.h>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/path/graph.h"

namespace lamina::analysis::path {

enum class SegmentKind : uint8_t {
  kHost,
  kHostGap,
  kLaunch,
  kHandoff,
  kSync,
  kQueue,  // for a place in the queue of a stream
  kCompute,
  kFill,
  kComm,
  kCopy,
  kDeviceGap,
  kBusyWait,  // of device work, while its device works on other streams
  kSubmittedWait,
  kOutside,  // for other processes
  kLeadIn,
  kBeforeTrace,
};
inline constexpr size_t kSegmentKinds = 16;
std::string_view SegmentKindName(SegmentKind kind);
// Whether it is device work itself, not what lies between.
bool IsWork(SegmentKind kind);
// What the work of an edge is on a chain.
SegmentKind WorkSegment(EdgeKind kind);

// What a class of segments says of the run.
enum class PathClass : uint8_t {
  kHost,    // host, host_gap, launch, handoff, sync, queue
  kDevice,  // compute, fill, device_gap, busy_wait
  kComm,
  kCopy,
  kWait,         // submitted_wait, outside, lead_in
  kBeforeTrace,  // left out of shares
};
inline constexpr size_t kPathClasses = 6;
PathClass ClassOf(SegmentKind kind);
std::string_view PathClassName(PathClass c);

struct Segment {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  SegmentKind kind = SegmentKind::kHost;
  SliceId owner;            // invalid: nobody
  uint32_t node = kNoNode;  // the node at whose end it stands
  bool inferred = false;    // it hangs on an edge that was inferred
};

// Times, work and residuals as recorded.
struct Recorded {
  const Graph& graph;
  int64_t time(uint32_t v) const { return graph.time(v); }
  int64_t residual(uint32_t v) const { return graph.residual(v); }
  int64_t chain_work(uint32_t v) const { return graph.chain_work(v); }
  int64_t work(uint32_t e) const { return graph.edges()[e].work_ns; }
  uint32_t critical(uint32_t v) const { return graph.critical(v); }
};

// Calls f(kind, from, to) for the parts of a wait of device work before the
// node at its start, the last one first: while its device works elsewhere it is
// no idle time. In recorded times.
void ForParts(const Graph& graph, uint32_t v, int64_t from, int64_t to,
              SegmentKind kind,
              absl::FunctionRef<void(SegmentKind, int64_t, int64_t)> f);

class Outcome;
// Calls f for the segments from `from_ns` to the time of `sink`, the last one
// first. They touch and add up to the window. Not before `until`, a node of the
// chain, where one is given. A chain may have nearly as many segments as there
// are nodes: what needs no order needs no list of them.
template <class View>
void ForSegments(const Graph& graph, const View& view, uint32_t sink,
                 int64_t from_ns, uint32_t until,
                 absl::FunctionRef<void(const Segment&)> f);

// The latest node of both chains, the recorded one and that of an outcome,
// below a position of the order below which both are the same; kNoNode: none.
uint32_t MeetBefore(const Graph& graph, const Outcome& outcome, uint32_t sink,
                    uint32_t position, int64_t from_ns);

// The segments of the recorded chain, by time.
std::vector<Segment> RecordedPath(const Graph& graph, uint32_t sink,
                                  int64_t from_ns);

// Time of each device event on the chain, by the row of its device arguments;
// of a graph of one recording. Nothing but what lies within the event counts.
std::vector<int64_t> TimesOfWork(const Graph& graph, uint32_t sink,
                                 int64_t from_ns);

// What device work takes of the critical path of the whole recording.
struct WorkOnPath {
  static constexpr std::string_view kFact = "work on the path";
  static Result<WorkOnPath> Of(const Context& context);

  std::vector<int64_t> times_ns;  // by row of device arguments; may be empty
};

// Nanoseconds by kind and by class.
struct PathSums {
  int64_t kind[kSegmentKinds] = {};
  int64_t inferred[kSegmentKinds] = {};  // of them, behind inferred edges
  int64_t segments[kSegmentKinds] = {};  // how many
  int64_t of(PathClass c) const;
  int64_t total() const;
  int64_t inferred_ns() const;
};
PathSums Sum(const std::vector<Segment>& segments);
// Adds `ns` of a segment.
void Add(PathSums& sums, const Segment& s, int64_t ns);
// The sums of a chain, as ForSegments.
template <class View>
PathSums SumChain(const Graph& graph, const View& view, uint32_t sink,
                  int64_t from_ns, uint32_t until = kNoNode);
PathSums SumRecorded(const Graph& graph, uint32_t sink, int64_t from_ns);
// The sums of the part of the segments within a window.
PathSums SumWithin(const std::vector<Segment>& segments, int64_t from,
                   int64_t to);

// "host_bound" ... by the class with the largest share; "mixed" below 60 %.
struct Verdict {
  std::string text;
  double percent = 0;  // share of the largest class, of the window without
                       // before_trace
  std::string second;
  double second_percent = 0;
};
Verdict VerdictOf(const PathSums& sums);

}  // namespace lamina::analysis::path
