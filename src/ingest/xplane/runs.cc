// SPDX-License-Identifier: Apache-2.0
//
// An instruction may launch several kernels, and its costs belong to all of
// them together: a run is a stretch of launches of one device, in the order of
// their correlation, that carry the same instruction. It ends where the
// execution of the program ends, as far as host ranges show that. A run
// becomes an op on the thread of its calls and spans them; the named scopes of
// the instruction become module frames around it.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <tuple>

#include "base/decimal.h"
#include "ingest/xplane/rows.h"

namespace lamina::ingest::xplane {

using trace::Kind;
using trace::kNoInt;
using trace::kNoRow;
using trace::TrackId;

namespace {

class Runs {
 public:
  Runs(Pending& pending, Programs& programs, Rows& rows)
      : pending_(pending), programs_(programs), rows_(rows) {}

  void Emit() {
    SortCalls();
    NameKernels();
    PairExecutions();
    MakeRuns();
    SeparateDevices();
    MakeScopes();
    EmitInstructions();
    EmitHost();
    EmitNameless();
  }

 private:
  struct Scope {
    TrackId track;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    StringId name;
    uint32_t depth = 0;
  };

  void SortCalls() {
    auto& calls = pending_.calls;
    std::stable_sort(calls.begin(), calls.end(),
                     [](const Call& a, const Call& b) {
                       return std::tuple(a.track, a.start_ns, -a.end_ns) <
                              std::tuple(b.track, b.start_ns, -b.end_ns);
                     });
    call_run_.assign(calls.size(), kNoRow);
    call_of_.reserve(calls.size());
    for (uint32_t i = 0; i < calls.size(); ++i) {
      const auto [it, is_new] = call_of_.try_emplace(calls[i].correlation, i);
      if (is_new) continue;
      const Call& known = calls[it->second];
      if (calls[i].start_ns < known.start_ns) it->second = i;
    }
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
      NamelessKernel& kernel = pending_.nameless[i];
      const auto it = by_kernel.find(kernel.name);
      if (it == by_kernel.end() || it->second == kSeveral) continue;
      kernel.instruction = it->second;
      pending_.launches.push_back({kernel.args.correlation, kernel.start_ns,
                                   kernel.args.device, it->second, i,
                                   kernel.name});
    }
  }

  // Calls may stand on other lines than the ranges of the same thread: a line
  // of calls belongs to the line whose executions hold most of them, to itself
  // before others.
  void PairExecutions() {
    executions_ =
        std::move(pending_.thunks.empty() ? pending_.modules : pending_.thunks);
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
    constexpr size_t kSample = 256;  // calls per line that are asked
    const auto& calls = pending_.calls;
    for (size_t begin = 0; begin < calls.size();) {
      size_t end = begin;
      while (end < calls.size() && calls[end].track == calls[begin].track)
        ++end;
      const size_t stride = std::max<size_t>(1, (end - begin) / kSample);
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

  void MakeRuns() {
    auto& launches = pending_.launches;
    std::stable_sort(launches.begin(), launches.end(),
                     [](const Launch& a, const Launch& b) {
                       return std::tuple(a.device, a.correlation, a.start_ns) <
                              std::tuple(b.device, b.correlation, b.start_ns);
                     });
    runs_ = std::move(pending_.runs);
    for (Run& run : runs_) run.execution = kNoRow;
    bool open = false;  // runs_.back() may go on
    for (const Launch& launch : launches) {
      const Call* call = nullptr;
      uint32_t call_row = kNoRow;
      // A kernel found by name has a call that launched something else.
      if (launch.nameless == kNoRow) {
        const auto it = call_of_.find(launch.correlation);
        if (it == call_of_.end()) {
          open = false;
          continue;  // no call: a row of the timeline, and unlinked
        }
        call_row = it->second;
        call = &pending_.calls[call_row];
      }
      const uint32_t execution = call ? ExecutionOf(*call) : kNoRow;
      const bool placed = open && runs_.back().track.valid();
      const bool goes_on = open && runs_.back().device == launch.device &&
                           runs_.back().instruction == launch.instruction &&
                           (call == nullptr || !placed ||
                            (runs_.back().track == call->track &&
                             runs_.back().execution == execution));
      if (!goes_on) {
        Run run;
        run.device = launch.device;
        run.instruction = launch.instruction;
        runs_.push_back(run);
        open = true;
      }
      Run& run = runs_.back();
      if (call != nullptr) {
        if (!run.track.valid()) {
          run.track = call->track;
          run.start_ns = call->start_ns;
          run.end_ns = call->end_ns;
          run.execution = execution;
        }
        run.start_ns = std::min(run.start_ns, call->start_ns);
        run.end_ns = std::max(run.end_ns, call->end_ns);
        call_run_[call_row] = static_cast<uint32_t>(runs_.size() - 1);
      } else {
        if (run.external_id == kNoInt)
          run.external_id = pending_.next_external_id++;
        NamelessKernel& kernel = pending_.nameless[launch.nameless];
        kernel.args.external_id = run.external_id;
        // The call that the profiler names is not the one that launched it.
        kernel.args.correlation = kNoInt;
      }
    }
    PlaceRuns();
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

  // Where one thread drives several devices at the same time, every device
  // gets a track of its own beside the thread's: ops of one track nest.
  void SeparateDevices() {
    order_.resize(runs_.size());
    for (uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
    const auto by_time = [&](uint32_t a, uint32_t b) {
      const Run& x = runs_[a];
      const Run& y = runs_[b];
      return std::tuple(x.track, x.start_ns, -x.end_ns, a) <
             std::tuple(y.track, y.start_ns, -y.end_ns, b);
    };
    std::sort(order_.begin(), order_.end(), by_time);
    absl::flat_hash_map<TrackId, bool> mixed;
    const Run* furthest = nullptr;  // of its track
    for (const uint32_t i : order_) {
      const Run& run = runs_[i];
      if (furthest != nullptr && furthest->track != run.track)
        furthest = nullptr;
      if (furthest != nullptr && furthest->device != run.device &&
          run.start_ns < furthest->end_ns)
        mixed[run.track] = true;
      if (furthest == nullptr || run.end_ns > furthest->end_ns) furthest = &run;
    }
    if (mixed.empty()) return;
    absl::flat_hash_map<std::pair<TrackId, int64_t>, TrackId> tracks;
    for (uint32_t i = 0; i < runs_.size(); ++i) {
      Run& run = runs_[i];
      if (!mixed.contains(run.track)) continue;
      TrackId& track = tracks[{run.track, run.device}];
      if (!track.valid()) {
        std::string tid = "calls ";
        AppendInt(tid, static_cast<int64_t>(run.track.value));
        tid += " of GPU ";
        AppendInt(tid, run.device);
        track = rows_.Track("/host:CPU", tid);
        rows_.Name(track, trace::TrackFact::What::kThreadName, tid);
      }
      run.track = track;
    }
    for (size_t i = 0; i < call_run_.size(); ++i) {
      if (call_run_[i] != kNoRow)
        pending_.calls[i].track = runs_[call_run_[i]].track;
    }
    std::sort(order_.begin(), order_.end(), by_time);
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
    for (const uint32_t i : order_) {
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
        open.push_back({run.track, run.start_ns, run.end_ns, path[d],
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
    struct Item {
      TrackId track;
      int64_t start_ns;
      int rank;  // 0 scope, 1 op, 2 call
      int64_t order;
      uint32_t index;
    };
    std::vector<Item> items;
    items.reserve(scopes_.size() + runs_.size() + pending_.calls.size());
    for (uint32_t i = 0; i < scopes_.size(); ++i)
      items.push_back(
          {scopes_[i].track, scopes_[i].start_ns, 0, scopes_[i].depth, i});
    for (uint32_t i = 0; i < runs_.size(); ++i)
      items.push_back(
          {runs_[i].track, runs_[i].start_ns, 1, -runs_[i].end_ns, i});
    for (uint32_t i = 0; i < pending_.calls.size(); ++i) {
      const Call& call = pending_.calls[i];
      items.push_back({call.track, call.start_ns, 2, -call.end_ns, i});
    }
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
      return std::tuple(a.track, a.start_ns, a.rank, a.order, a.index) <
             std::tuple(b.track, b.start_ns, b.rank, b.order, b.index);
    });
    const uint8_t op_category = rows_.Category("cpu_op");
    const uint8_t scope_category = rows_.Category("python_function");
    const uint8_t runtime_category = rows_.Category("cuda_runtime");
    const uint8_t driver_category = rows_.Category("cuda_driver");
    trace::Segment& segment = rows_.segment();
    std::vector<uint32_t> op_rows;
    for (const Item& item : items) {
      if (item.rank == 0) {
        const Scope& scope = scopes_[item.index];
        rows_.AddSlice(scope.start_ns, scope.end_ns - scope.start_ns,
                       scope.name, Kind::kPython, scope_category, scope.track,
                       0, segment.AddPython({}));
      } else if (item.rank == 1) {
        const Run& run = runs_[item.index];
        const RanInstruction& ran = programs_.ran(run.instruction);
        trace::OpArgs args;
        args.dims = ran.dims;
        args.types = ran.types;
        args.external_id = run.external_id;
        args.instruction = run.instruction;
        rows_.AddSlice(run.start_ns, run.end_ns - run.start_ns, ran.row.name,
                       Kind::kOp, op_category, run.track, 0,
                       segment.AddOp(args));
      } else {
        const Call& call = pending_.calls[item.index];
        trace::ApiArgs args;
        args.correlation = call.correlation;
        rows_.AddSlice(
            call.start_ns, call.end_ns - call.start_ns, call.name, call.kind,
            call.kind == Kind::kDriver ? driver_category : runtime_category,
            call.track, call.offset, segment.AddApi(args));
      }
    }
  }

  void EmitNameless() {
    const uint8_t category = rows_.Category("kernel");
    for (const NamelessKernel& kernel : pending_.nameless) {
      rows_.AddSlice(kernel.start_ns, kernel.dur_ns, kernel.name, Kind::kKernel,
                     category, kernel.track, kernel.offset,
                     rows_.segment().AddDevice(kernel.args));
    }
    rows_.Flush();
  }

  Pending& pending_;
  Programs& programs_;
  Rows& rows_;
  absl::flat_hash_map<int64_t, uint32_t> call_of_;  // by correlation
  std::vector<uint32_t> call_run_;
  std::vector<Execution> executions_;
  absl::flat_hash_map<TrackId, TrackId> line_of_;  // of calls: of executions
  std::vector<Run> runs_;
  std::vector<uint32_t> order_;  // runs by track and time
  std::vector<Scope> scopes_;
};

}  // namespace

void EmitPending(Pending& pending, Programs& programs, Rows& rows) {
  Runs(pending, programs, rows).Emit();
}

}  // namespace lamina::ingest::xplane
