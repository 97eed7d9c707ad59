// SPDX-License-Identifier: Apache-2.0
//
// An instruction may launch several kernels, and its costs belong to all of
// them together: a run is a stretch of launches of one device, in the order of
// their correlation, that carry the same instruction. It ends where the
// execution of the program ends, as far as host ranges show that. A run
// becomes an op on the thread of its calls and spans them; the named scopes of
// the instruction become module frames around it.
//
// There may be as many of these rows as events, so each list is sorted in
// place, back to front, and given back while it turns into the next.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "base/decimal.h"
#include "ingest/xplane/rows.h"

namespace lamina::ingest::xplane {

using trace::Kind;
using trace::kNoInt;
using trace::kNoRow;
using trace::TrackId;

namespace {

// Sorts so that the smallest is the last: rows are taken off the end.
template <class T, class Key>
void SortBackwards(Waiting<T>& rows, Key key) {
  std::sort(rows.begin(), rows.end(),
            [&](const T& a, const T& b) { return key(b) < key(a); });
}

class Runs {
 public:
  Runs(Pending& pending, Programs& programs, Rows& rows)
      : pending_(pending), programs_(programs), rows_(rows) {}

  void Emit() {
    OrderDevices();
    NameKernels();
    PairExecutions();
    MakeRuns();
    PlaceRuns();
    executions_.Reset();
    SortRuns();
    SeparateDevices();
    MakeScopes();
    EmitInstructions();
    EmitHost();
    EmitNameless();
  }

 private:
  struct Scope {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    TrackId track;
    StringId name;
    uint32_t depth = 0;
  };

  // From now on the rows of devices are in the order of their numbers.
  void OrderDevices() {
    auto& devices = pending_.devices;
    std::vector<uint32_t> order(devices.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return devices[a] < devices[b]; });
    std::vector<uint32_t> place(order.size());
    for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    std::sort(devices.begin(), devices.end());
    for (Launch& launch : pending_.launches)
      launch.device = place[launch.device];
    for (Run& run : pending_.runs) run.device = place[run.device];
    for (NamelessKernel& kernel : pending_.nameless)
      kernel.device = place[kernel.device];
  }

  // A kernel without an instruction takes the one that its name has everywhere
  // else, when that is exactly one.
  void NameKernels() {
    if (pending_.nameless.empty()) return;
    constexpr uint32_t kSeveral = kNoRow - 1;
    absl::flat_hash_map<StringId, uint32_t> by_kernel;
    for (const Launch& launch : pending_.launches) {
      const auto [it, is_new] =
          by_kernel.try_emplace(launch.kernel, launch.instruction);
      if (!is_new && it->second != launch.instruction) it->second = kSeveral;
    }
    for (uint32_t i = 0; i < pending_.nameless.size(); ++i) {
      const NamelessKernel& kernel = pending_.nameless[i];
      const auto it = by_kernel.find(kernel.name);
      if (it == by_kernel.end() || it->second == kSeveral) continue;
      pending_.launches.push_back({kernel.args.correlation, kernel.start_ns,
                                   kernel.device, it->second, i, kernel.name});
    }
  }

  // Calls may stand on other lines than the ranges of the same thread: a line
  // of calls belongs to the line whose executions hold most of them, to itself
  // before others.
  void PairExecutions() {
    executions_ =
        std::move(pending_.thunks.empty() ? pending_.modules : pending_.thunks);
    pending_.thunks.Reset();
    pending_.modules.Reset();
    auto& calls = pending_.calls;
    std::sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) {
      return std::tuple(a.track, a.start_ns, a.offset) <
             std::tuple(b.track, b.start_ns, b.offset);
    });
    std::sort(executions_.begin(), executions_.end(),
              [](const Execution& a, const Execution& b) {
                return std::tuple(a.track, a.start_ns, a.end_ns) <
                       std::tuple(b.track, b.start_ns, b.end_ns);
              });
    std::vector<TrackId> tracks;
    for (const Execution& execution : executions_) {
      if (tracks.empty() || tracks.back() != execution.track)
        tracks.push_back(execution.track);
    }
    size_t lines = calls.empty() ? 0 : 1;
    for (size_t i = 1; i < calls.size(); ++i)
      lines += calls[i].track != calls[i - 1].track;
    if (tracks.empty() || lines == 0) return;
    // Calls per line that are asked. A host has some hundred threads; lines
    // without number are no recording.
    constexpr size_t kMostAsked = size_t{1} << 24;
    const size_t sample =
        std::min<size_t>(256, kMostAsked / tracks.size() / lines);
    if (sample == 0) return;
    for (size_t begin = 0; begin < calls.size();) {
      size_t end = begin;
      while (end < calls.size() && calls[end].track == calls[begin].track)
        ++end;
      const size_t stride = std::max<size_t>(1, (end - begin) / sample);
      size_t best = 0;
      size_t second = 0;
      TrackId owner;
      for (const TrackId track : tracks) {
        size_t held = 0;
        for (size_t i = begin; i < end; i += stride)
          held += ExecutionAt(track, calls[i].start_ns) != kNoRow;
        if (held > best ||
            (held == best && held > 0 && track == calls[begin].track)) {
          // The line itself wins a tie.
          if (track == calls[begin].track) ++held;
          second = best;
          best = held;
          owner = track;
        } else {
          second = std::max(second, held);
        }
      }
      if (best > second) line_of_[calls[begin].track] = owner;
      begin = end;
    }
  }

  uint32_t ExecutionAt(TrackId track, int64_t time_ns) const {
    auto after = std::upper_bound(executions_.begin(), executions_.end(),
                                  std::pair(track, time_ns),
                                  [](const auto& key, const Execution& e) {
                                    return key < std::pair(e.track, e.start_ns);
                                  });
    if (after == executions_.begin()) return kNoRow;
    --after;
    if (after->track != track || time_ns >= after->end_ns) return kNoRow;
    return static_cast<uint32_t>(after - executions_.begin());
  }

  uint32_t ExecutionOf(const Call& call) const {
    const auto it = line_of_.find(call.track);
    return it == line_of_.end() ? kNoRow
                                : ExecutionAt(it->second, call.start_ns);
  }

  // The first call with a correlation; null where there is none. Launches of
  // one device ask in order, so the search begins at the last answer.
  Call* FindCall(int64_t correlation) {
    auto& calls = pending_.calls;
    const auto before = [&](size_t i) {
      return calls[i].correlation < correlation;
    };
    size_t low = at_call_ < calls.size() && before(at_call_) ? at_call_ : 0;
    size_t high = calls.size();
    for (size_t step = 1; low + step < high; step *= 2) {
      if (!before(low + step)) {
        high = low + step;
        break;
      }
      low += step;
    }
    at_call_ = static_cast<size_t>(
        std::partition_point(
            calls.begin() + low, calls.begin() + high,
            [&](const Call& call) { return call.correlation < correlation; }) -
        calls.begin());
    return at_call_ < calls.size() && !before(at_call_) &&
                   calls[at_call_].correlation == correlation
               ? &calls[at_call_]
               : nullptr;
  }

  void MakeRuns() {
    auto& calls = pending_.calls;
    std::sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) {
      return std::tuple(a.correlation, a.start_ns, a.track, -a.end_ns,
                        a.offset) < std::tuple(b.correlation, b.start_ns,
                                               b.track, -b.end_ns, b.offset);
    });
    auto& launches = pending_.launches;
    SortBackwards(launches, [](const Launch& l) {
      // Kernels found by name, which have a row, come behind the others.
      return std::tuple(l.device, l.correlation, l.start_ns, l.nameless + 1,
                        l.instruction, l.kernel);
    });
    runs_ = std::move(pending_.runs);
    for (Run& run : runs_) run.execution = kNoRow;
    for (; !launches.empty(); launches.Pop()) AddLaunch(launches.back());
    for (uint32_t i = 0; i < runs_.size(); ++i) runs_[i].number = i;
  }

  // The launch becomes part of the last run, or the next one.
  void AddLaunch(const Launch& launch) {
    Call* call = nullptr;
    // A kernel found by name has a call that launched something else.
    if (launch.nameless == kNoRow) {
      call = FindCall(launch.correlation);
      if (call == nullptr) {
        run_open_ = false;
        return;  // no call: a row of the timeline, and unlinked
      }
    }
    const uint32_t execution = call != nullptr ? ExecutionOf(*call) : kNoRow;
    if (!run_open_ || !GoesOn(launch, call, execution)) {
      Run run;
      run.device = launch.device;
      run.instruction = launch.instruction;
      runs_.push_back(run);
      run_open_ = true;
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

  bool GoesOn(const Launch& launch, const Call* call,
              uint32_t execution) const {
    const Run& run = runs_.back();
    return run.device == launch.device &&
           run.instruction == launch.instruction &&
           (call == nullptr || !run.track.valid() ||
            (run.track == call->track && run.execution == execution));
  }

  // Runs without a call of their own stand where the run before them on the
  // device ends.
  void PlaceRuns() {
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
        run.track = rows_.Track("/host:CPU", "no call");
      }
    }
  }

  void SortRuns() {
    SortBackwards(runs_, [](const Run& r) {
      return std::tuple(r.track, r.start_ns, -r.end_ns, r.number);
    });
  }

  // Where one thread drives several devices at the same time, every device
  // gets a track of its own beside the thread's: ops of one track nest.
  void SeparateDevices() {
    absl::flat_hash_set<TrackId> mixed;
    const Run* furthest = nullptr;  // of its track
    for (size_t i = runs_.size(); i-- > 0;) {
      const Run& run = runs_[i];
      if (furthest != nullptr && furthest->track != run.track)
        furthest = nullptr;
      if (furthest != nullptr && furthest->device != run.device &&
          run.start_ns < furthest->end_ns)
        mixed.insert(run.track);
      if (furthest == nullptr || run.end_ns > furthest->end_ns) furthest = &run;
    }
    if (mixed.empty()) return;
    std::set<std::pair<uint32_t, TrackId>> lanes;
    for (const Run& run : runs_) {
      if (mixed.contains(run.track)) lanes.emplace(run.device, run.track);
    }
    absl::flat_hash_map<std::pair<uint32_t, TrackId>, TrackId> tracks;
    for (const auto& lane : lanes) tracks[lane] = DeviceTrack(lane);
    const auto move = [&](uint32_t device, TrackId& track) {
      const auto it = tracks.find(std::pair(device, track));
      if (it != tracks.end()) track = it->second;
    };
    for (Run& run : runs_) move(run.device, run.track);
    for (Call& call : pending_.calls) move(call.device, call.track);
    SortRuns();
  }

  TrackId DeviceTrack(const std::pair<uint32_t, TrackId>& lane) {
    std::string tid = "calls ";
    AppendInt(tid, static_cast<int64_t>(lane.second.value));
    tid += " of GPU ";
    AppendInt(tid, pending_.devices[lane.first]);
    const TrackId track = rows_.Track("/host:CPU", tid);
    rows_.Name(track, trace::TrackFact::What::kThreadName, tid);
    return track;
  }

  // Frames of the scopes: as long as the runs of a thread share them.
  void MakeScopes() {
    std::vector<Scope> open;
    const auto close = [&](size_t keep) {
      while (open.size() > keep) {
        scopes_.push_back(open.back());
        open.pop_back();
      }
    };
    const Run* before = nullptr;
    for (size_t i = runs_.size(); i-- > 0;) {
      const Run& run = runs_[i];
      const auto& path = programs_.ran(run.instruction).scopes;
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
                        static_cast<uint32_t>(d)});
      }
      before = &run;
    }
    close(0);
  }

  void EmitInstructions() {
    trace::Segment& segment = rows_.segment();
    rows_.Flush();
    for (RanInstruction& ran : programs_.all()) {
      if (ran.is_collective)
        ran.row.collective = segment.AddCollective(ran.collective);
      segment.instructions.push_back(ran.row);
    }
  }

  // Scopes, ops and calls, in order of track and time; at one instant the
  // outer ones first.
  void EmitHost() {
    SortBackwards(scopes_, [](const Scope& s) {
      return std::tuple(s.track, s.start_ns, s.depth, s.end_ns, s.name);
    });
    SortBackwards(pending_.calls, [](const Call& c) {
      return std::tuple(c.track, c.start_ns, -c.end_ns, c.offset);
    });
    enum Rank { kScope, kOp, kCall };
    using Key = std::tuple<TrackId, int64_t, int>;
    while (true) {
      std::optional<Key> next;
      const auto ask = [&](const auto& rows, int rank) {
        if (rows.empty()) return;
        const Key key(rows.back().track, rows.back().start_ns, rank);
        if (!next || key < *next) next = key;
      };
      ask(scopes_, kScope);
      ask(runs_, kOp);
      ask(pending_.calls, kCall);
      if (!next) return;
      switch (std::get<int>(*next)) {
        case kScope:
          EmitScope(scopes_.back());
          scopes_.Pop();
          break;
        case kOp:
          EmitOp(runs_.back());
          runs_.Pop();
          break;
        default:
          EmitCall(pending_.calls.back());
          pending_.calls.Pop();
      }
    }
  }

  void EmitScope(const Scope& scope) {
    rows_.AddSlice(scope.start_ns, scope.end_ns - scope.start_ns, scope.name,
                   Kind::kPython, rows_.python, scope.track, 0,
                   rows_.segment().AddPython({}));
  }

  void EmitOp(const Run& run) {
    const RanInstruction& ran = programs_.ran(run.instruction);
    trace::OpArgs args;
    args.dims = ran.dims;
    args.types = ran.types;
    args.external_id = run.external_id;
    args.instruction = run.instruction;
    rows_.AddSlice(run.start_ns, run.end_ns - run.start_ns, ran.row.name,
                   Kind::kOp, rows_.op, run.track, 0,
                   rows_.segment().AddOp(args));
  }

  void EmitCall(const Call& call) {
    trace::ApiArgs args;
    args.correlation = call.correlation;
    rows_.AddSlice(call.start_ns, call.end_ns - call.start_ns, call.name,
                   call.kind,
                   call.kind == Kind::kDriver ? rows_.driver : rows_.runtime,
                   call.track, call.offset, rows_.segment().AddApi(args));
  }

  void EmitNameless() {
    auto& kernels = pending_.nameless;
    std::reverse(kernels.begin(), kernels.end());
    for (; !kernels.empty(); kernels.Pop()) {
      const NamelessKernel& kernel = kernels.back();
      rows_.AddSlice(kernel.start_ns, kernel.dur_ns, kernel.name, Kind::kKernel,
                     rows_.kernel, kernel.track, kernel.offset,
                     rows_.segment().AddDevice(kernel.args));
    }
    rows_.Flush();
  }

  Pending& pending_;
  Programs& programs_;
  Rows& rows_;
  PodVector<Execution> executions_;
  absl::flat_hash_map<TrackId, TrackId> line_of_;  // of calls: of executions
  size_t at_call_ = 0;     // of the last answer of FindCall
  bool run_open_ = false;  // runs_.back() may go on
  Waiting<Run> runs_;
  Waiting<Scope> scopes_;
};

}  // namespace

void EmitPending(Pending& pending, Programs& programs, Rows& rows) {
  Runs(pending, programs, rows).Emit();
}

}  // namespace lamina::ingest::xplane
