// SPDX-License-Identifier: Apache-2.0
#include "analysis/host/idle.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include "analysis/host/activities.h"
#include "analysis/host/work_stretch.h"
#include "base/parallel.h"

namespace lamina::analysis::host {
namespace {

// Where a gap changes its causes: [start, launch) the host has not launched,
// [launch, submit) a slow or feeding call, [submit, ready) launching, [ready,
// woken) another stream, [woken, spaced) spacing, then unexplained.
struct Bounds {
  int64_t launch = 0, submit = 0, ready = 0, woken = 0, spaced = 0;
  bool staged = false;
  bool woken_by_copy = false;
};

// What the host and its launch have of it: all up to ready.
Bounds LaunchOf(const HostModel& model, const Interval& gap, SliceId next) {
  const Trace& trace = model.trace();
  const Call& call = model.calls()[model.call(next)];
  const int64_t a = gap.start_ns;
  const int64_t b = gap.end_ns;
  Bounds out;
  out.staged = call.staged;
  const int64_t submit = call.staged ? trace.Start(next) : call.submit_ns;
  out.launch = std::min(b, std::max(a, trace.Start(call.slice)));
  out.submit = std::min(b, std::max(out.launch, submit));
  out.ready = std::min(b, std::max(out.submit, model.Ready(next)));
  out.woken = out.spaced = out.ready;
  return out;
}

// `near` as for HostModel::Infer.
Bounds BoundsOf(const HostModel& model, const Interval& gap, SliceId next,
                size_t* near) {
  const Trace& trace = model.trace();
  const int64_t b = gap.end_ns;
  Bounds out = LaunchOf(model, gap, next);
  if (b <= out.ready) return out;
  SliceId source;
  const auto better = [&](SliceId s) {
    if (s.valid() && (!source.valid() || trace.End(s) > trace.End(source)))
      source = s;
  };
  const auto recorded = model.Dependencies(next);
  for (const auto& [waits, on] : recorded) better(on);
  if (recorded.empty() && b - out.ready > kDelayNs)
    better(model.Infer(next, out.ready, near));
  if (source.valid() && std::min(b, trace.End(source)) > out.ready) {
    out.woken = std::min(b, trace.End(source));
    out.woken_by_copy = model.kind(source) == WorkKind::kCopy;
  }
  out.spaced = std::min(b, out.woken + model.facts(model.stream(next)).gap_ns);
  return out;
}

// How long nothing is recorded within [a, x), on any thread of the process or
// by the operating system of the launching one; 0 if not long enough.
int64_t QuietTime(const HostModel& model, const Thread& thread, int64_t a,
                  int64_t x) {
  if (x - a < kQuietNs) return 0;
  const int64_t quiet =
      x - a - model.host_of(thread).Over(a, x) - thread.os.active.Over(a, x);
  return quiet >= kQuietNs ? quiet : 0;
}

// Calls sink(cause, from, to) for the tail of a gap from its launch on.
template <class Sink>
void Tail(const Bounds& at, const Interval& gap, const Sink& sink) {
  sink(at.staged ? Cause::kMemcpy : Cause::kHostBound, at.launch, at.submit);
  sink(Cause::kLaunchOverhead, at.submit, at.ready);
  sink(at.woken_by_copy ? Cause::kMemcpy : Cause::kDependency, at.ready,
       at.woken);
  sink(Cause::kKernelWait, at.woken, at.spaced);
  sink(Cause::kSubmittedWait, at.spaced, gap.end_ns);
}

// Nothing for gaps that are cut.
std::optional<Cause> WholeCause(const HostModel& model, SliceId next,
                                SliceId before) {
  if (model.call(next) == kNone) return Cause::kUnlinked;
  if (before.valid() && model.SameCall(before, next)) return Cause::kGraph;
  return std::nullopt;
}

void AddTo(IdleSum& sum, const CauseTimes& times, SliceId next) {
  for (size_t c = 0; c < kCauses; ++c) {
    if (times[c] == 0) continue;
    sum.times[c] += times[c];
    ++sum.counts[c];
    if (times[c] > sum.largest[c]) {
      sum.largest[c] = times[c];
      sum.largest_next[c] = next;
    }
  }
}

// The sums of a later stretch of the same events.
void Join(IdleSum& sum, const IdleSum& later) {
  for (size_t c = 0; c < kCauses; ++c) {
    sum.times[c] += later.times[c];
    sum.counts[c] += later.counts[c];
    if (later.largest[c] > sum.largest[c]) {
      sum.largest[c] = later.largest[c];
      sum.largest_next[c] = later.largest_next[c];
    }
  }
}

// The parts of some gaps of a device that follow each other, in order.
class GapParts {
 public:
  explicit GapParts(const HostModel& model) : model_(model) {}

  // Parts number the gaps from 0.
  void Run(std::span<const host::Gap> gaps) {
    parts.reserve(2 * gaps.size());
    for (const host::Gap& gap : gaps) {
      times_ = {};
      Gap(gap.interval, gap.next, gap.before);
      AddTo(sum, times_, gap.next);
      ++gap_;
    }
  }

  IdleSum sum;
  std::vector<Part> parts;

 private:
  void Add(Cause cause, int64_t from, int64_t to) {
    if (to <= from) return;
    times_[static_cast<size_t>(cause)] += to - from;
    if (!parts.empty() && parts.back().gap == gap_ &&
        parts.back().cause == cause &&
        parts.back().start_ns + parts.back().length_ns == from &&
        parts.back().after_sync == after_ &&
        parts.back().scattered == Scattered::kNo) {
      parts.back().length_ns += to - from;
      return;
    }
    Part part;
    part.gap = gap_;
    part.start_ns = from;
    part.length_ns = to - from;
    part.cause = cause;
    part.after_sync = after_ && cause == Cause::kHostBound;
    parts.push_back(part);
  }

  void Gap(const Interval& gap, SliceId next, SliceId before) {
    after_ = false;
    if (const auto cause = WholeCause(model_, next, before)) {
      Add(*cause, gap.start_ns, gap.end_ns);
      return;
    }
    const Bounds at = BoundsOf(model_, gap, next, &near_);
    const Thread& thread =
        model_.threads()[model_.calls()[model_.call(next)].thread];
    const int64_t a = gap.start_ns;
    const int64_t x = at.launch;
    const bool quiet = QuietTime(model_, thread, a, x) > 0;
    const int64_t drained = Drained(thread, a, x);
    if (Scatter(thread, a, x, drained, quiet)) {
      LaunchTail(at, gap, drained);
      return;
    }
    const auto host = [&](int64_t from, int64_t to) {
      const int64_t cut = std::clamp(drained, from, to);
      Add(Cause::kHostBound, from, cut);
      after_ = true;
      Add(Cause::kHostBound, cut, to);
      after_ = false;
    };
    Cut(
        thread.blocked, a, x,
        [&](int64_t from, int64_t to) {
          Cut(
              thread.copies, from, to,
              [&](int64_t u, int64_t v) { Add(Cause::kMemcpy, u, v); },
              [&](int64_t u, int64_t v) { Add(Cause::kSync, u, v); });
        },
        [&](int64_t from, int64_t to) {
          if (!quiet) {
            host(from, to);
            return;
          }
          Cut(model_.host_of(thread), from, to, host,
              [&](int64_t alone, int64_t until) {
                Cut(thread.os.active, alone, until, host,
                    [&](int64_t u, int64_t v) { Add(Cause::kNoWork, u, v); });
              });
        });
    LaunchTail(at, gap, drained);
  }

  void LaunchTail(const Bounds& at, const Interval& gap, int64_t drained) {
    Tail(at, gap, [&](Cause cause, int64_t from, int64_t to) {
      after_ = cause == Cause::kHostBound && drained <= from;
      Add(cause, from, to);
    });
  }

  // The time before the launch as one part, or two around `drained`, where it
  // has too many pieces; false: it has not.
  bool Scatter(const Thread& thread, int64_t a, int64_t x, int64_t drained,
               bool quiet) {
    if (!MayScatter(thread)) return false;
    const auto pieces = [&](const Cover& cover) {
      return cover.FirstAfter(x) - cover.FirstAfter(a);
    };
    const Cover& host = model_.host_of(thread);
    if (pieces(thread.blocked) + (quiet ? pieces(host) : 0) <= kMostPieces)
      return false;
    const int64_t cut = std::clamp(drained, a, x);
    for (const auto& [from, to] : {std::pair(a, cut), std::pair(cut, x)}) {
      if (to <= from) continue;
      const int64_t copies = thread.copies.Over(from, to);
      const int64_t sync = thread.blocked.Over(from, to) - copies;
      const int64_t none = quiet ? to - from - host.Over(from, to) : 0;
      times_[static_cast<size_t>(Cause::kMemcpy)] += copies;
      times_[static_cast<size_t>(Cause::kSync)] += sync;
      times_[static_cast<size_t>(Cause::kNoWork)] += none;
      times_[static_cast<size_t>(Cause::kHostBound)] +=
          to - from - copies - sync - none;
      Part part;
      part.gap = gap_;
      part.start_ns = from;
      part.length_ns = to - from;
      part.cause = Cause::kHostBound;
      part.after_sync = from == cut;
      part.scattered = quiet ? Scattered::kQuiet : Scattered::kAll;
      parts.push_back(part);
    }
    return true;
  }

  // When the thread returned, within [a, x), from a call that waited for the
  // work before the gap or for later work; the largest time if it did not.
  int64_t Drained(const Thread& thread, int64_t a, int64_t x) const {
    const Trace& trace = model_.trace();
    constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
    const auto& waits = model_.waits();
    auto it = std::partition_point(
        thread.waits.begin(), thread.waits.end(),
        [&](uint32_t w) { return trace.End(waits[w].slice) <= a; });
    for (; it != thread.waits.end(); ++it) {
      const Wait& wait = waits[*it];
      if (trace.Start(wait.slice) >= x) break;
      if (!wait.target.valid() || trace.End(wait.target) < a) continue;
      if (trace.End(wait.slice) <= x) return trace.End(wait.slice);
    }
    return kNever;
  }

  const HostModel& model_;
  uint32_t gap_ = 0;
  size_t near_ = 0;
  CauseTimes times_{};
  bool after_ = false;
};

}  // namespace

bool MayScatter(const Thread& thread) {
  // What the operating system recorded is cut exactly.
  return thread.crowded && thread.os.states.empty() &&
         thread.os.active.intervals().empty();
}

std::string_view CauseName(Cause cause) {
  static constexpr std::array<std::string_view, kCauses> kNames = {
      "unlinked",    "graph",         "memcpy",          "sync",
      "no_work",     "host_bound",    "launch_overhead", "dependency",
      "kernel_wait", "submitted_wait"};
  return kNames[static_cast<size_t>(cause)];
}

bool HostIsLate(const HostModel& model, const Interval& gap, SliceId next,
                SliceId before) {
  if (WholeCause(model, next, before)) return false;
  const Bounds at = LaunchOf(model, gap, next);
  if (at.ready > at.submit || (!at.staged && at.submit > at.launch))
    return true;
  const Thread& thread =
      model.threads()[model.calls()[model.call(next)].thread];
  return at.launch - gap.start_ns >
         thread.blocked.Over(gap.start_ns, at.launch) +
             QuietTime(model, thread, gap.start_ns, at.launch);
}

namespace {

// The causes of one gap. Sums only: O(log n). `near` as for HostModel::Infer.
CauseTimes SplitGap(const HostModel& model, const Interval& gap, SliceId next,
                    SliceId before, size_t* near) {
  CauseTimes out{};
  const auto add = [&](Cause cause, int64_t ns) {
    out[static_cast<size_t>(cause)] += ns;
  };
  if (const auto cause = WholeCause(model, next, before)) {
    add(*cause, gap.length_ns());
    return out;
  }
  const Bounds at = BoundsOf(model, gap, next, near);
  const Thread& thread =
      model.threads()[model.calls()[model.call(next)].thread];
  const int64_t a = gap.start_ns;
  const int64_t x = at.launch;
  const int64_t copies = thread.copies.Over(a, x);
  const int64_t blocked = thread.blocked.Over(a, x) - copies;
  const int64_t quiet = QuietTime(model, thread, a, x);
  add(Cause::kMemcpy, copies);
  add(Cause::kSync, blocked);
  add(Cause::kNoWork, quiet);
  add(Cause::kHostBound, x - a - copies - blocked - quiet);
  Tail(at, gap,
       [&](Cause cause, int64_t from, int64_t to) { add(cause, to - from); });
  return out;
}

}  // namespace

IdleSum StreamIdle(const HostModel& model, uint32_t stream) {
  const Trace& trace = model.trace();
  const std::span<const SliceId> work = trace.streams[stream].slices;
  IdleSum sum;
  if (work.empty()) return sum;
  size_t near = 0;
  int64_t idle_ns = 0;
  const auto stretches = CutWork(trace, work, 1);
  for (const WorkStretch& stretch : stretches) {
    ForGaps(trace, work, stretch,
            [&](const Interval& gap, SliceId next, SliceId before) {
              ++sum.gaps;
              idle_ns += gap.length_ns();
              AddTo(sum, SplitGap(model, gap, next, before, &near), next);
            });
  }
  sum.events = work.size();
  sum.span_ns = trace.End(stretches.back().behind) - trace.Start(work[0]);
  sum.busy_ns = sum.span_ns - idle_ns;
  return sum;
}

Result<Idle> Idle::Of(const Context& context) {
  LAMINA_ASSIGN(const HostModel* const model, context.Get<HostModel>());
  LAMINA_ASSIGN(const auto rules, LoadRules(context.input.data));
  return FindIdle(*model, *rules);
}

Idle FindIdle(const HostModel& model, const rules::PatternTable& rules) {
  const Trace& trace = model.trace();
  const int threads = model.context().settings.threads;
  const auto devices = static_cast<uint32_t>(model.devices().size());
  // Stretches of one device each: gaps, and their parts while they are at hand.
  struct Piece {
    uint32_t device = 0;
    WorkStretch stretch;
    PodVector<Gap> gaps;
    IdleSum sum;
    size_t first = 0;  // number of its first gap
  };
  std::vector<Piece> pieces;
  for (uint32_t d = 0; d < devices; ++d) {
    for (const WorkStretch& s :
         CutWork(trace, model.devices()[d].work, threads))
      pieces.push_back({d, s, {}, {}, 0});
  }
  Idle idle;
  idle.devices.resize(devices);
  // Each writes its gaps where there is room for as many as it has events; then
  // they close up.
  Gap* room = idle.gaps.AppendUninitialized(trace.device_slices().size());
  for (Piece& piece : pieces) {
    const size_t most = piece.stretch.end - piece.stretch.begin;
    piece.gaps = PodVector<Gap>::Borrow(room, most);
    piece.gaps.clear();
    room += most;
  }
  std::vector<std::vector<Part>> parts(pieces.size());
  ParallelFor(threads, pieces.size(), [&](size_t i) {
    Piece& piece = pieces[i];
    ForGaps(trace, model.devices()[piece.device].work, piece.stretch,
            [&](const Interval& gap, SliceId next, SliceId before) {
              piece.gaps.push_back({piece.device, gap, before, next});
            });
    GapParts made(model);
    made.Run(piece.gaps.span());
    piece.sum = made.sum;
    parts[i] = std::move(made.parts);
  });
  size_t count = 0;
  for (Piece& piece : pieces) {
    piece.first = count;
    count += piece.gaps.size();
    IdleSum& sum = idle.devices[piece.device];
    Join(sum, piece.sum);
    sum.gaps += piece.gaps.size();
    const std::vector<SliceId>& work = model.devices()[piece.device].work;
    if (piece.stretch.end < work.size()) continue;
    int64_t idle_ns = 0;
    for (const int64_t ns : sum.times) idle_ns += ns;
    sum.events = work.size();
    sum.span_ns = trace.End(piece.stretch.behind) - trace.Start(work[0]);
    sum.busy_ns = sum.span_ns - idle_ns;
  }
  for (const Piece& piece : pieces)
    std::copy(piece.gaps.begin(), piece.gaps.end(),
              idle.gaps.begin() + piece.first);
  idle.gaps.resize(count);
  idle.gaps.shrink_to_fit();
  ParallelFor(threads, pieces.size(), [&](size_t i) {
    for (Part& part : parts[i])
      part.gap += static_cast<uint32_t>(pieces[i].first);
  });
  LabelHostParts(model, rules, idle.gaps.span(), parts, idle.activities);
  std::vector<size_t> first(1, 0);
  for (const std::vector<Part>& of_piece : parts)
    first.push_back(first.back() + of_piece.size());
  Part* const all = idle.parts.AppendUninitialized(first.back());
  idle.first_part.resize(count + 1);
  idle.first_part.back() = static_cast<uint32_t>(first.back());
  ParallelFor(threads, pieces.size(), [&](size_t i) {
    std::copy(parts[i].begin(), parts[i].end(), all + first[i]);
    const size_t end = i + 1 < pieces.size() ? pieces[i + 1].first : count;
    size_t p = 0;
    for (size_t g = pieces[i].first; g < end; ++g) {
      idle.first_part[g] = static_cast<uint32_t>(first[i] + p);
      while (p < parts[i].size() && parts[i][p].gap == g) ++p;
    }
    parts[i] = {};
  });
  return idle;
}

IdleEvidence::Sums& IdleEvidence::Sums::operator+=(const Sums& more) {
  busy_ns += more.busy_ns;
  host_bound_ns += more.host_bound_ns;
  launch_overhead_ns += more.launch_overhead_ns;
  submitted_wait_ns += more.submitted_wait_ns;
  waiting_ns += more.waiting_ns;
  return *this;
}

IdleEvidence IdleEvidence::Of(const HostModel& model,
                              std::span<const Interval> windows) {
  IdleEvidence out(model, windows);
  out.AddQueues(model);
  out.AddDevices(model);
  out.Finish(windows);
  return out;
}

IdleEvidence::IdleEvidence(const HostModel& model,
                           std::span<const Interval> windows)
    : devices_(model.devices().size()) {
  for (const Interval& window : windows) {
    bounds_.push_back(window.start_ns);
    bounds_.push_back(window.end_ns);
  }
  std::sort(bounds_.begin(), bounds_.end());
  bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  pieces_.resize(bounds_.size());  // nothing is behind the last
}

size_t IdleEvidence::PieceAt(int64_t time, size_t near) const {
  return BoundNear(bounds_.size() - 1, near,
                   [&](size_t i) { return bounds_[i + 1] <= time; });
}

void IdleEvidence::Add(const Interval& interval, int64_t Sums::*to,
                       size_t& near, size_t first,
                       std::vector<Sums>& pieces) const {
  AddBy(interval, to, near, first, pieces,
        [](int64_t from, int64_t until) { return until - from; });
}

template <class Length>
void IdleEvidence::AddBy(const Interval& interval, int64_t Sums::*to,
                         size_t& near, size_t first, std::vector<Sums>& pieces,
                         const Length& length) const {
  near = PieceAt(interval.start_ns, near);
  for (size_t i = near; i + 1 < bounds_.size(); ++i) {
    const int64_t from = std::max(bounds_[i], interval.start_ns);
    const int64_t until = std::min(bounds_[i + 1], interval.end_ns);
    if (bounds_[i] >= interval.end_ns) break;
    if (until > from) pieces[i - first].*to += length(from, until);
  }
}

// The union of the times in which work waited, the latest start first: of what
// starts earlier all that lies behind the earliest launch so far is known.
void IdleEvidence::AddQueues(const HostModel& model) {
  if (bounds_.empty()) return;
  const Trace& trace = model.trace();
  const auto& work = trace.device_slices();
  int64_t reached = std::numeric_limits<int64_t>::max();
  size_t near = bounds_.size() - 1;
  for (size_t i = work.size(); i-- > 0;) {
    const uint32_t call = model.call(work[i]);
    if (call == kNone) continue;
    const int64_t from = trace.Start(model.calls()[call].slice);
    const int64_t to = std::min(trace.Start(work[i]), reached);
    if (from >= to) continue;
    Add({from, to}, &Sums::waiting_ns, near, 0, pieces_);
    reached = from;
  }
}

void IdleEvidence::AddDevices(const HostModel& model) {
  if (bounds_.empty()) return;
  const Trace& trace = model.trace();
  const int threads = model.context().settings.threads;
  for (const DeviceFacts& device : model.devices()) {
    const std::span<const SliceId> work = device.work;
    const std::vector<WorkStretch> stretches = CutWork(trace, work, threads);
    // What a stretch adds to the pieces that it lies in.
    struct Added {
      size_t first = 0;  // piece
      std::vector<Sums> pieces;
    };
    std::vector<Added> added(stretches.size());
    ParallelFor(threads, stretches.size(), [&](size_t i) {
      const WorkStretch& stretch = stretches[i];
      std::vector<Gap> gaps;
      gaps.reserve(stretch.end - stretch.begin);
      ForGaps(trace, work, stretch,
              [&](const Interval& gap, SliceId next, SliceId before) {
                gaps.push_back({0, gap, before, next});
              });
      int64_t busy_from = stretch.before.valid() ? trace.End(stretch.before)
                                                 : trace.Start(work[0]);
      const int64_t end = trace.End(stretch.behind);
      Added& own = added[i];
      own.first = PieceAt(busy_from, 0);
      own.pieces.resize(PieceAt(end, own.first) - own.first + 1);
      size_t near = own.first;
      for (const Gap& gap : gaps) {
        Add({busy_from, gap.interval.start_ns}, &Sums::busy_ns, near, own.first,
            own.pieces);
        busy_from = gap.interval.end_ns;
      }
      Add({busy_from, end}, &Sums::busy_ns, near, own.first, own.pieces);
      GapParts made(model);
      made.Run(gaps);
      near = own.first;
      for (const Part& part : made.parts) {
        const Interval times = {part.start_ns, part.start_ns + part.length_ns};
        if (part.scattered != Scattered::kNo) {
          const Call& call = model.calls()[model.call(gaps[part.gap].next)];
          const Thread& thread = model.threads()[call.thread];
          AddBy(times, &Sums::host_bound_ns, near, own.first, own.pieces,
                [&](int64_t from, int64_t to) {
                  const int64_t none =
                      part.scattered == Scattered::kQuiet
                          ? to - from - model.host_of(thread).Over(from, to)
                          : 0;
                  return to - from - thread.blocked.Over(from, to) - none;
                });
        } else if (part.cause == Cause::kHostBound) {
          Add(times, &Sums::host_bound_ns, near, own.first, own.pieces);
        } else if (part.cause == Cause::kLaunchOverhead) {
          Add(times, &Sums::launch_overhead_ns, near, own.first, own.pieces);
        } else if (part.cause == Cause::kSubmittedWait) {
          Add(times, &Sums::submitted_wait_ns, near, own.first, own.pieces);
        }
      }
    });
    for (const Added& own : added) {
      for (size_t i = 0; i < own.pieces.size(); ++i)
        pieces_[own.first + i] += own.pieces[i];
    }
  }
}

void IdleEvidence::Finish(std::span<const Interval> windows) {
  // Windows overlap: sums up to each bound.
  std::vector<Sums> before(bounds_.size() + 1);
  for (size_t i = 0; i < bounds_.size(); ++i) {
    before[i + 1] = before[i];
    before[i + 1] += pieces_[i];
  }
  const auto at = [&](int64_t time) -> const Sums& {
    return before[static_cast<size_t>(
        std::lower_bound(bounds_.begin(), bounds_.end(), time) -
        bounds_.begin())];
  };
  for (const Interval& window : windows) {
    const Sums &from = at(window.start_ns), &to = at(window.end_ns);
    sums_.push_back(
        {.busy_ns = to.busy_ns - from.busy_ns,
         .host_bound_ns = to.host_bound_ns - from.host_bound_ns,
         .launch_overhead_ns = to.launch_overhead_ns - from.launch_overhead_ns,
         .submitted_wait_ns = to.submitted_wait_ns - from.submitted_wait_ns,
         .waiting_ns = to.waiting_ns - from.waiting_ns});
  }
}

}  // namespace lamina::analysis::host
