// SPDX-License-Identifier: Apache-2.0
//
// From launches to runs of instructions: the execution that each call belongs
// to, the scopes around runs, and tracks for each device. Near-linear in calls
// and runs.

#include "ingest/xplane/runs.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "base/decimal.h"
#include "base/status.h"
#include "ingest/xplane/pending.h"

namespace lamina::ingest::xplane {

// Executions of programs on the host: ranges that hold the launches of one run
// of a program.

class Executions {
 public:
  // Takes the executions out of `pending`, whose calls are in order of line.
  explicit Executions(Pending& pending);

  // The number of the execution in which a call is made; kNoRow for none.
  uint32_t Of(const Call& call) const;

 private:
  void PairLines(const Waiting<Call>& calls);
  trace::TrackId OwnerOf(std::span<const Call> line, size_t sample) const;
  uint32_t At(trace::TrackId track, int64_t time_ns) const;

  PodVector<Execution> rows_;           // by line and start
  std::vector<trace::TrackId> tracks_;  // lines with executions
  // Line of calls to line of executions.
  absl::flat_hash_map<trace::TrackId, trace::TrackId> line_of_;
};

// Calls may stand on other lines than the ranges of the same thread: a line of
// calls belongs to the line whose executions hold most of them, to itself
// before others.

using trace::kNoRow;
using trace::TrackId;

Executions::Executions(Pending& pending)
    : rows_(std::move(pending.thunks.empty() ? pending.modules
                                             : pending.thunks)) {
  pending.thunks.Reset();
  pending.modules.Reset();
  std::sort(rows_.begin(), rows_.end(),
            [](const Execution& a, const Execution& b) {
              return std::tuple(a.track, a.start_ns, a.end_ns) <
                     std::tuple(b.track, b.start_ns, b.end_ns);
            });
  for (const Execution& execution : rows_) {
    if (tracks_.empty() || tracks_.back() != execution.track)
      tracks_.push_back(execution.track);
  }
  PairLines(pending.calls);
}

uint32_t Executions::Of(const Call& call) const {
  const auto it = line_of_.find(call.track);
  return it == line_of_.end() ? kNoRow : At(it->second, call.start_ns);
}

void Executions::PairLines(const Waiting<Call>& calls) {
  size_t lines = calls.empty() ? 0 : 1;
  for (size_t i = 1; i < calls.size(); ++i)
    lines += calls[i].track != calls[i - 1].track;
  if (tracks_.empty() || lines == 0) return;
  // Calls per line that are asked. A host has some hundred threads; lines
  // without number are no recording.
  constexpr size_t kMostAsked = size_t{1} << 24;
  const size_t sample =
      std::min<size_t>(256, kMostAsked / tracks_.size() / lines);
  if (sample == 0) return;
  for (size_t begin = 0; begin < calls.size();) {
    size_t end = begin;
    while (end < calls.size() && calls[end].track == calls[begin].track) ++end;
    const TrackId owner =
        OwnerOf(calls.span().subspan(begin, end - begin), sample);
    if (owner.valid()) line_of_[calls[begin].track] = owner;
    begin = end;
  }
}

// The line whose executions hold most of the calls; invalid where two hold as
// many.
TrackId Executions::OwnerOf(std::span<const Call> line, size_t sample) const {
  const size_t stride = std::max<size_t>(1, line.size() / sample);
  size_t best = 0;
  size_t second = 0;
  TrackId owner;
  for (const TrackId track : tracks_) {
    size_t held = 0;
    for (size_t i = 0; i < line.size(); i += stride)
      held += At(track, line[i].start_ns) != kNoRow;
    const bool itself = track == line.front().track;
    if (held > best || (held == best && held > 0 && itself)) {
      // The line itself wins a tie.
      if (itself) ++held;
      second = best;
      best = held;
      owner = track;
    } else {
      second = std::max(second, held);
    }
  }
  return best > second ? owner : TrackId();
}

uint32_t Executions::At(TrackId track, int64_t time_ns) const {
  auto after =
      std::upper_bound(rows_.begin(), rows_.end(), std::pair(track, time_ns),
                       [](const auto& key, const Execution& e) {
                         return key < std::pair(e.track, e.start_ns);
                       });
  if (after == rows_.begin()) return kNoRow;
  --after;
  if (after->track != track || time_ns >= after->end_ns) return kNoRow;
  return static_cast<uint32_t>(after - rows_.begin());
}

using trace::kNoInt;
using trace::kNoRow;

namespace {

// From now on the rows of devices are in the order of their numbers.
void OrderDevices(Pending& pending) {
  auto& devices = pending.devices;
  std::vector<uint32_t> order(devices.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return devices[a] < devices[b]; });
  std::vector<uint32_t> place(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::sort(devices.begin(), devices.end());
  for (Launch& launch : pending.launches) launch.device = place[launch.device];
  for (Run& run : pending.runs) run.device = place[run.device];
  for (NamelessKernel& kernel : pending.nameless)
    kernel.device = place[kernel.device];
}

// In order of track and time, as they are written later.
void SortCalls(Waiting<Call>& calls) {
  const auto less = [](const Call& a, const Call& b) {
    return std::tuple(a.track, a.start_ns, -a.end_ns, a.offset) <
           std::tuple(b.track, b.start_ns, -b.end_ns, b.offset);
  };
  if (!std::is_sorted(calls.begin(), calls.end(), less))
    std::sort(calls.begin(), calls.end(), less);
}

// A kernel without an instruction takes the one that its name has everywhere
// else, when that is exactly one.
void NameKernels(Pending& pending) {
  if (pending.nameless.empty()) return;
  constexpr uint32_t kSeveral = kNoRow - 1;
  absl::flat_hash_map<StringId, uint32_t> by_kernel;
  for (const Launch& launch : pending.launches) {
    const auto [it, is_new] =
        by_kernel.try_emplace(launch.kernel, launch.instruction);
    if (!is_new && it->second != launch.instruction) it->second = kSeveral;
  }
  for (uint32_t i = 0; i < pending.nameless.size(); ++i) {
    const NamelessKernel& kernel = pending.nameless[i];
    const auto it = by_kernel.find(kernel.name);
    if (it == by_kernel.end() || it->second == kSeveral) continue;
    pending.launches.push_back({kernel.args.correlation, kernel.start_ns,
                                kernel.device, it->second, i, kernel.name});
  }
}

// Calls by their correlation. Launches of one device ask in order, so a search
// begins at the last answer.
class CallsByCorrelation {
 public:
  explicit CallsByCorrelation(Waiting<Call>& calls) : calls_(calls) {
    LAMINA_CHECK(calls.size() < kNoRow);
    entries_.reserve(calls.size());
    for (uint32_t i = 0; i < calls.size(); ++i)
      entries_.push_back({calls[i].correlation, i});
    const auto less = [&](const Entry& a, const Entry& b) {
      return std::tuple(a.correlation, calls[a.row].start_ns, a.row) <
             std::tuple(b.correlation, calls[b.row].start_ns, b.row);
    };
    if (!std::is_sorted(entries_.begin(), entries_.end(), less))
      std::sort(entries_.begin(), entries_.end(), less);
  }

  // The first call with a correlation; null where there is none.
  Call* Find(int64_t correlation) {
    const auto before = [&](const Entry& entry) {
      return entry.correlation < correlation;
    };
    size_t low = at_ < entries_.size() && before(entries_[at_]) ? at_ : 0;
    size_t high = entries_.size();
    for (size_t step = 1; low + step < high; step *= 2) {
      if (!before(entries_[low + step])) {
        high = low + step;
        break;
      }
      low += step;
    }
    const Entry* const found = std::partition_point(
        entries_.begin() + low, entries_.begin() + high, before);
    at_ = static_cast<size_t>(found - entries_.begin());
    return found != entries_.end() && found->correlation == correlation
               ? &calls_[found->row]
               : nullptr;
  }

 private:
  struct Entry {
    int64_t correlation;
    uint32_t row;
  };

  Waiting<Call>& calls_;
  PodVector<Entry> entries_;
  size_t at_ = 0;  // of the last answer
};

// Joins launches, in their order, to runs.
class RunMaker {
 public:
  explicit RunMaker(Pending& pending)
      : pending_(pending),
        executions_(pending),
        calls_(pending.calls),
        runs_(std::move(pending.runs)) {
    for (Run& run : runs_) run.execution = kNoRow;
  }

  // The launch becomes part of the last run, or the next one.
  void Add(const Launch& launch) {
    Call* call = nullptr;
    // A kernel found by name has a call that launched something else.
    if (launch.nameless == kNoRow) {
      call = calls_.Find(launch.correlation);
      if (call == nullptr) {
        open_ = false;
        return;  // no call: a row of the timeline, and unlinked
      }
    }
    const uint32_t execution = call != nullptr ? executions_.Of(*call) : kNoRow;
    if (!open_ || !GoesOn(launch, call, execution)) {
      Run run;
      run.device = launch.device;
      run.instruction = launch.instruction;
      runs_.push_back(run);
      open_ = true;
    }
    Run& run = runs_.back();
    if (call == nullptr) {
      if (run.external_id == kNoInt)
        run.external_id = pending_.next_external_id++;
      NamelessKernel& kernel = pending_.nameless[launch.nameless];
      kernel.args.external_id = run.external_id;
      // The call that the profiler names is not the one that launched it.
      kernel.args.correlation = kNoInt;
      return;
    }
    if (!run.track.valid()) {
      run.track = call->track;
      run.start_ns = call->start_ns;
      run.end_ns = call->end_ns;
      run.execution = execution;
    }
    run.start_ns = std::min(run.start_ns, call->start_ns);
    run.end_ns = std::max(run.end_ns, call->end_ns);
    call->device = launch.device;
  }

  // Runs without a call of their own stand where the run before them on the
  // device ends.
  void Place(Rows& rows) {
    for (uint32_t i = 0; i < runs_.size(); ++i) runs_[i].number = i;
    for (size_t i = 0; i < runs_.size(); ++i) {
      Run& run = runs_[i];
      if (run.track.valid()) continue;
      const auto same = [&](size_t j) {
        return j < runs_.size() && runs_[j].device == run.device &&
               runs_[j].track.valid();
      };
      if (i > 0 && same(i - 1)) {
        run.track = runs_[i - 1].track;
        run.start_ns = run.end_ns = runs_[i - 1].end_ns;
        run.execution = runs_[i - 1].execution;
      } else if (same(i + 1)) {
        run.track = runs_[i + 1].track;
        run.start_ns = run.end_ns = runs_[i + 1].start_ns;
        run.execution = runs_[i + 1].execution;
      } else {
        run.track = rows.Track("/host:CPU", "no call");
      }
    }
  }

  Waiting<Run> Take() { return std::move(runs_); }

 private:
  bool GoesOn(const Launch& launch, const Call* call,
              uint32_t execution) const {
    const Run& run = runs_.back();
    return run.device == launch.device &&
           run.instruction == launch.instruction &&
           (call == nullptr || !run.track.valid() ||
            (run.track == call->track && run.execution == execution));
  }

  Pending& pending_;
  const Executions executions_;
  CallsByCorrelation calls_;
  bool open_ = false;  // runs_.back() may go on
  Waiting<Run> runs_;
};

}  // namespace

void SortRuns(Waiting<Run>& runs) {
  SortBackwards(runs, [](const Run& r) {
    return std::tuple(r.track, r.start_ns, -r.end_ns, r.number);
  });
}

Waiting<Run> MakeRuns(Pending& pending, Rows& rows) {
  OrderDevices(pending);
  NameKernels(pending);
  SortCalls(pending.calls);
  RunMaker maker(pending);
  auto& launches = pending.launches;
  SortBackwards(launches, [](const Launch& l) {
    // Kernels found by name, which have a row, come behind the others.
    return std::tuple(l.device, l.correlation, l.start_ns, l.nameless + 1,
                      l.instruction, l.kernel);
  });
  for (; !launches.empty(); launches.Pop()) maker.Add(launches.back());
  maker.Place(rows);
  Waiting<Run> runs = maker.Take();
  SortRuns(runs);
  SeparateDevices(runs, pending, rows);
  return runs;
}

// The named scopes of instructions become module frames around their runs.

Waiting<Scope> MakeScopes(const Waiting<Run>& runs, const Programs& programs) {
  Waiting<Scope> scopes;
  std::vector<Scope> open;
  uint32_t begun = 0;
  const auto close = [&](size_t keep) {
    while (open.size() > keep) {
      scopes.push_back(open.back());
      open.pop_back();
    }
  };
  const Run* before = nullptr;
  for (size_t i = runs.size(); i-- > 0;) {
    const Run& run = runs[i];
    const auto& path = programs.ran(run.instruction).scopes;
    size_t keep = 0;
    if (before != nullptr && before->track == run.track &&
        before->execution == run.execution) {
      while (keep < open.size() && keep < path.size() &&
             open[keep].name == path[keep])
        ++keep;
    }
    close(keep);
    for (size_t d = 0; d < keep; ++d)
      open[d].end_ns = std::max(open[d].end_ns, run.end_ns);
    for (size_t d = keep; d < path.size(); ++d) {
      open.push_back({run.start_ns, run.end_ns, run.track, path[d],
                      static_cast<uint32_t>(d), begun++});
    }
    before = &run;
  }
  close(0);
  return scopes;
}

// Where one thread drives several devices at the same time, every device gets a
// track of its own beside the thread's.

using trace::TrackId;

namespace {

// Tracks on which runs of several devices overlap.
absl::flat_hash_set<TrackId> MixedTracks(const Waiting<Run>& runs) {
  absl::flat_hash_set<TrackId> mixed;
  const Run* furthest = nullptr;  // of its track
  for (size_t i = runs.size(); i-- > 0;) {
    const Run& run = runs[i];
    if (furthest != nullptr && furthest->track != run.track) furthest = nullptr;
    if (furthest != nullptr && furthest->device != run.device &&
        run.start_ns < furthest->end_ns)
      mixed.insert(run.track);
    if (furthest == nullptr || run.end_ns > furthest->end_ns) furthest = &run;
  }
  return mixed;
}

TrackId DeviceTrack(const std::pair<uint32_t, TrackId>& lane,
                    const Pending& pending, Rows& rows) {
  std::string tid = "calls ";
  AppendInt(tid, static_cast<int64_t>(lane.second.value));
  tid += " of GPU ";
  AppendInt(tid, pending.devices[lane.first]);
  const TrackId track = rows.Track("/host:CPU", tid);
  rows.Name(track, trace::TrackFact::What::kThreadName, tid);
  return track;
}

}  // namespace

void SeparateDevices(Waiting<Run>& runs, Pending& pending, Rows& rows) {
  const absl::flat_hash_set<TrackId> mixed = MixedTracks(runs);
  if (mixed.empty()) return;
  std::set<std::pair<uint32_t, TrackId>> lanes;
  for (const Run& run : runs) {
    if (mixed.contains(run.track)) lanes.emplace(run.device, run.track);
  }
  absl::flat_hash_map<std::pair<uint32_t, TrackId>, TrackId> tracks;
  for (const auto& lane : lanes)
    tracks[lane] = DeviceTrack(lane, pending, rows);
  const auto move = [&](uint32_t device, TrackId& track) {
    const auto it = tracks.find(std::pair(device, track));
    if (it != tracks.end()) track = it->second;
  };
  for (Run& run : runs) move(run.device, run.track);
  for (Call& call : pending.calls) move(call.device, call.track);
  SortRuns(runs);
}

}  // namespace lamina::ingest::xplane
