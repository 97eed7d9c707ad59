// SPDX-License-Identifier: Apache-2.0
#include "analysis/path/chain.h"

#include <algorithm>
#include <array>
#include <optional>

#include "analysis/common/stats.h"
#include "analysis/path/what_if.h"

namespace lamina::analysis::path {
namespace {

// Behind work of the stream a shorter wait is a gap, a longer one is not
// explained.
constexpr int64_t kGapNs = 5000;
// Share from which one class is the verdict.
constexpr double kVerdictPercent = 60;

}  // namespace

bool IsWork(SegmentKind kind) {
  return kind == SegmentKind::kCompute || kind == SegmentKind::kFill ||
         kind == SegmentKind::kComm || kind == SegmentKind::kCopy;
}

SegmentKind WorkSegment(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kCompute:
      return SegmentKind::kCompute;
    case EdgeKind::kComm:
    case EdgeKind::kCollective:
      return SegmentKind::kComm;
    case EdgeKind::kCopy:
      return SegmentKind::kCopy;
    case EdgeKind::kFill:
      return SegmentKind::kFill;
    case EdgeKind::kOrder:
    case EdgeKind::kOverlap:
    case EdgeKind::kDependency:
    case EdgeKind::kDependencyCall:
    case EdgeKind::kDependencyInferred:
    case EdgeKind::kDependencyPossible:
      return SegmentKind::kDeviceGap;
    case EdgeKind::kLaunch:
    case EdgeKind::kSubmit:
      return SegmentKind::kLaunch;
    case EdgeKind::kHostGap:
      return SegmentKind::kHostGap;
    case EdgeKind::kSync:
    case EdgeKind::kPoll:
      return SegmentKind::kSync;
    case EdgeKind::kQueue:
      return SegmentKind::kQueue;
    case EdgeKind::kOutside:
    case EdgeKind::kOutsideWait:
      return SegmentKind::kOutside;
    case EdgeKind::kHandoff:
    case EdgeKind::kAsleep:
      return SegmentKind::kHandoff;
    default:
      return SegmentKind::kHost;
  }
}

std::string_view SegmentKindName(SegmentKind kind) {
  static constexpr std::array<std::string_view, kSegmentKinds> kNames = {
      "host",           "host_gap", "launch",     "handoff",
      "sync",           "queue",    "compute",    "fill",
      "comm",           "copy",     "device_gap", "busy_wait",
      "submitted_wait", "outside",  "lead_in",    "before_trace"};
  return kNames[static_cast<size_t>(kind)];
}

PathClass ClassOf(SegmentKind kind) {
  switch (kind) {
    case SegmentKind::kHost:
    case SegmentKind::kHostGap:
    case SegmentKind::kLaunch:
    case SegmentKind::kHandoff:
    case SegmentKind::kSync:
    case SegmentKind::kQueue:
      return PathClass::kHost;
    case SegmentKind::kCompute:
    case SegmentKind::kFill:
    case SegmentKind::kDeviceGap:
    case SegmentKind::kBusyWait:
      return PathClass::kDevice;
    case SegmentKind::kComm:
      return PathClass::kComm;
    case SegmentKind::kCopy:
      return PathClass::kCopy;
    case SegmentKind::kBeforeTrace:
      return PathClass::kBeforeTrace;
    default:
      return PathClass::kWait;
  }
}

std::string_view PathClassName(PathClass c) {
  static constexpr std::array<std::string_view, kPathClasses> kNames = {
      "host", "device", "comm", "copy", "wait", "before_trace"};
  return kNames[static_cast<size_t>(c)];
}

void ForParts(const Graph& graph, uint32_t v, int64_t from, int64_t to,
              SegmentKind kind,
              absl::FunctionRef<void(SegmentKind, int64_t, int64_t)> f) {
  const host::Cover& busy = graph.busy(v);
  const auto intervals = busy.intervals();
  // The last that begins before the end of the wait.
  auto it = std::partition_point(
      intervals.begin(), intervals.end(),
      [&](const Interval& interval) { return interval.start_ns < to; });
  while (to > from) {
    if (it == intervals.begin() || std::prev(it)->end_ns <= from) {
      f(kind, from, to);
      return;
    }
    --it;
    if (it->end_ns < to) f(kind, it->end_ns, to);
    to = std::min(to, it->end_ns);
    const int64_t start = std::max(from, it->start_ns);
    if (start < to) f(SegmentKind::kBusyWait, start, to);
    to = start;
  }
}

namespace {

// The work of the device of `v` that runs until `time`, by the clock of the
// graph; `none` where it is not found among the last that began.
SliceId Running(const Graph& graph, uint32_t v, int64_t time, SliceId none) {
  constexpr size_t kMostBack = 64;
  const HostModel& model = graph.model(graph.PartOf(v));
  const Trace& trace = model.trace();
  const SliceId waits = graph.Work(v);
  const auto& work = model.devices()[model.device(waits)].work;
  const int64_t at = trace.Start(waits) - (graph.time(v) - time);
  auto it = std::partition_point(
      work.begin(), work.end(), [&](SliceId s) { return trace.Start(s) < at; });
  for (size_t i = 0; i < kMostBack && it != work.begin(); ++i) {
    --it;
    if (trace.End(*it) >= at && *it != waits) return *it;
  }
  return none;
}

}  // namespace

template <class View>
void ForSegments(const Graph& graph, const View& view, uint32_t sink,
                 int64_t from_ns, uint32_t until,
                 absl::FunctionRef<void(const Segment&)> f) {
  uint32_t v = sink;
  bool inferred = false;
  // What lies behind is covered: work that overlaps is cut.
  int64_t cursor = view.time(sink);
  const auto add = [&](int64_t start, int64_t end, SegmentKind kind,
                       SliceId owner) {
    start = std::max(start, from_ns);
    end = std::min(end, cursor);
    if (end <= start) return;
    f({start, end, kind, owner, v, inferred});
    cursor = start;
  };
  // A wait of device work. Times of a scenario are those recorded, moved.
  const auto wait = [&](int64_t start, int64_t end, SegmentKind kind,
                        SliceId owner) {
    start = std::max(start, from_ns);
    end = std::min(end, cursor);
    if (end <= start) return;
    if (graph.BeforeTrace(v) && kind != SegmentKind::kDeviceGap)
      kind = SegmentKind::kBeforeTrace;
    const int64_t moved = view.time(v) - graph.time(v);
    ForParts(graph, v, start - moved, end - moved, kind,
             [&](SegmentKind part, int64_t from, int64_t to) {
               add(from + moved, to + moved, part,
                   part == SegmentKind::kBusyWait ? Running(graph, v, to, owner)
                                                  : owner);
             });
  };
  while (v != until) {
    const int64_t t = view.time(v);
    if (cursor <= from_ns) break;
    const uint32_t critical = view.critical(v);
    if (critical == kNoNode) {
      inferred = false;
      if (graph.OfDevice(v))
        wait(from_ns, cursor, SegmentKind::kSubmittedWait, graph.Work(v));
      add(from_ns, cursor, SegmentKind::kLeadIn, SliceId());
      break;
    }
    const bool chain = critical == kChain;
    const Edge* edge = chain ? nullptr : &graph.edges()[critical];
    const uint32_t u = chain ? v - 1 : edge->from;
    const EdgeKind kind = chain ? graph.chain(v) : edge->kind;
    const SliceId owner = chain ? graph.owner(v) : edge->owner;
    const int64_t work = chain ? view.chain_work(v) : view.work(critical);
    inferred = !chain && edge->inferred;
    const int64_t before = view.time(u), middle = before + work;
    const bool starts =
        graph.OfDevice(v) && (v - graph.first_device()) % 2 == 0;
    if (starts && kind != EdgeKind::kCollective) {
      // What the edge leaves unexplained, and then the edge.
      wait(middle, t,
           kind == EdgeKind::kOrder && t - middle < kGapNs
               ? SegmentKind::kDeviceGap
               : SegmentKind::kSubmittedWait,
           owner);
      if (kind == EdgeKind::kLaunch || kind == EdgeKind::kSubmit) {
        add(before, middle, SegmentKind::kLaunch, owner);
      } else {
        wait(std::min(before, middle), std::max(before, middle),
             SegmentKind::kDeviceGap, owner);
      }
    } else {
      add(before, t, WorkSegment(kind), owner);
    }
    v = u;
  }
}

template void ForSegments<Recorded>(const Graph&, const Recorded&, uint32_t,
                                    int64_t, uint32_t,
                                    absl::FunctionRef<void(const Segment&)>);
template void ForSegments<Outcome>(const Graph&, const Outcome&, uint32_t,
                                   int64_t, uint32_t,
                                   absl::FunctionRef<void(const Segment&)>);

uint32_t MeetBefore(const Graph& graph, const Outcome& outcome, uint32_t sink,
                    uint32_t position, int64_t from_ns) {
  // The node before `v` on a chain; kNoNode at its begin.
  const auto before = [&](uint32_t v, uint32_t critical) {
    return critical == kNoNode  ? kNoNode
           : critical == kChain ? v - 1
                                : graph.edges()[critical].from;
  };
  uint32_t then = sink, now = sink;
  while (then != kNoNode && graph.position(then) >= position)
    then = before(then, outcome.critical(then));
  while (now != kNoNode && graph.position(now) >= position)
    now = before(now, graph.critical(now));
  // From here on both are recorded chains: positions only fall.
  while (then != now && then != kNoNode && now != kNoNode) {
    uint32_t& later = graph.position(then) > graph.position(now) ? then : now;
    later = before(later, graph.critical(later));
  }
  return then == now && then != kNoNode && graph.time(then) > from_ns ? then
                                                                      : kNoNode;
}

std::vector<Segment> RecordedPath(const Graph& graph, uint32_t sink,
                                  int64_t from_ns) {
  const Recorded view{graph};
  // Counted first: what grows takes three times the room.
  size_t count = 0;
  ForSegments(graph, view, sink, from_ns, kNoNode,
              [&](const Segment&) { ++count; });
  std::vector<Segment> out(count);
  ForSegments(graph, view, sink, from_ns, kNoNode,
              [&](const Segment& s) { out[--count] = s; });
  return out;
}

std::vector<int64_t> TimesOfWork(const Graph& graph, uint32_t sink,
                                 int64_t from_ns) {
  const Trace& trace = graph.model().trace();
  std::vector<int64_t> times(trace.device.size(), 0);
  ForSegments(graph, Recorded{graph}, sink, from_ns, kNoNode,
              [&](const Segment& s) {
                if (!IsWork(s.kind) || !s.owner.valid() ||
                    !trace::IsDevice(trace.KindOf(s.owner)))
                  return;
                // A call may feed on a copy beyond its end.
                times[trace.slices.detail[s.owner.value]] += std::max<int64_t>(
                    0, std::min(s.end_ns, trace.End(s.owner)) -
                           std::max(s.start_ns, trace.Start(s.owner)));
              });
  return times;
}

Result<WorkOnPath> WorkOnPath::Of(const Context& context) {
  LAMINA_ASSIGN(const Graph* const graph, context.Get<Graph>());
  WorkOnPath out;
  if (graph->sink() != kNoNode)
    out.times_ns = TimesOfWork(*graph, graph->sink(), graph->start_ns());
  return out;
}

int64_t PathSums::of(PathClass c) const {
  int64_t sum = 0;
  for (size_t k = 0; k < kSegmentKinds; ++k) {
    if (ClassOf(static_cast<SegmentKind>(k)) == c) sum += kind[k];
  }
  return sum;
}

int64_t PathSums::total() const {
  int64_t sum = 0;
  for (const int64_t ns : kind) sum += ns;
  return sum;
}

int64_t PathSums::inferred_ns() const {
  int64_t sum = 0;
  for (const int64_t ns : inferred) sum += ns;
  return sum;
}

void Add(PathSums& sums, const Segment& s, int64_t ns) {
  const auto kind = static_cast<size_t>(s.kind);
  sums.kind[kind] += ns;
  if (s.inferred) sums.inferred[kind] += ns;
  ++sums.segments[kind];
}

PathSums Sum(const std::vector<Segment>& segments) {
  PathSums sums;
  for (const Segment& s : segments) Add(sums, s, s.end_ns - s.start_ns);
  return sums;
}

template <class View>
PathSums SumChain(const Graph& graph, const View& view, uint32_t sink,
                  int64_t from_ns, uint32_t until) {
  PathSums sums;
  ForSegments(graph, view, sink, from_ns, until,
              [&](const Segment& s) { Add(sums, s, s.end_ns - s.start_ns); });
  return sums;
}

template PathSums SumChain<Recorded>(const Graph&, const Recorded&, uint32_t,
                                     int64_t, uint32_t);
template PathSums SumChain<Outcome>(const Graph&, const Outcome&, uint32_t,
                                    int64_t, uint32_t);

PathSums SumRecorded(const Graph& graph, uint32_t sink, int64_t from_ns) {
  return SumChain(graph, Recorded{graph}, sink, from_ns);
}

PathSums SumWithin(const std::vector<Segment>& segments, int64_t from,
                   int64_t to) {
  PathSums sums;
  auto it =
      std::partition_point(segments.begin(), segments.end(),
                           [&](const Segment& s) { return s.end_ns <= from; });
  for (; it != segments.end() && it->start_ns < to; ++it)
    Add(sums, *it, std::min(to, it->end_ns) - std::max(from, it->start_ns));
  return sums;
}

Verdict VerdictOf(const PathSums& sums) {
  static constexpr std::array<std::string_view, kPathClasses - 1> kTexts = {
      "host_bound", "device_bound", "comm_bound", "copy_bound",
      "unexplained_wait"};
  const int64_t whole = sums.total() - sums.of(PathClass::kBeforeTrace);
  Verdict out;
  if (whole <= 0) return out;
  std::array<size_t, kPathClasses - 1> order = {0, 1, 2, 3, 4};
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return sums.of(static_cast<PathClass>(a)) >
           sums.of(static_cast<PathClass>(b));
  });
  const auto percent = [&](size_t i) {
    return PercentOf(sums.of(static_cast<PathClass>(order[i])), whole);
  };
  out.percent = percent(0);
  out.second_percent = percent(1);
  if (out.second_percent > 0)
    out.second = PathClassName(static_cast<PathClass>(order[1]));
  out.text =
      out.percent >= kVerdictPercent
          ? std::string(kTexts[order[0]])
          : "mixed: " +
                std::string(PathClassName(static_cast<PathClass>(order[0]))) +
                (out.second.empty() ? "" : ", " + out.second);
  return out;
}

}  // namespace lamina::analysis::path
