// SPDX-License-Identifier: Apache-2.0
//
// What the operating system did for the threads of the recording: calls of its
// runtime library, and when the scheduler put threads on a processor.
#include <algorithm>
#include <tuple>

#include "ingest/nsys/export_file.h"
#include "trace/os_records.h"

namespace lamina::ingest::nsys {

using trace::Effect;
using trace::Kind;
using trace::kNoInt;

namespace {

constexpr size_t kRowsPerPiece = 1 << 14;

size_t Pieces(size_t rows) {
  return (rows + kRowsPerPiece - 1) / kRowsPerPiece;
}

}  // namespace

// --------------------------------------------------------------------------
// Calls of the OS runtime.

void ExportFile::ReadOsCalls() {
  std::vector<CallRow> calls = Collect<CallRow>(
      Table("OSRT_API"), {"start", "end", "globalTid", "nameId"},
      &ExportThread::OsCall);
  const int64_t last_ns = Recorded().end_ns;
  uint64_t open = 0;
  for (CallRow& call : calls) {
    if (call.end_ns != kNoInt) continue;
    call.end_ns = std::max(call.start_ns, last_ns);
    ++open;
  }
  if (open > 0) {
    diagnostics().Add(Effect::kRepaired, "os_call_without_end",
                      "A call of the operating system had not returned when "
                      "the recording ended; it is taken to last to the end.",
                      kNoOffset, open);
  }
  if (const uint64_t clipped = ClipOverlaps(calls); clipped > 0) {
    diagnostics().Add(Effect::kRepaired, "os_calls_overlap",
                      "A call of the operating system began before the "
                      "previous one of its thread had ended; the earlier one "
                      "is taken to end there.",
                      kNoOffset, clipped);
  }
  reader_.ForPieces(Pieces(calls.size()), [&](int worker, size_t piece) {
    const size_t end = std::min(calls.size(), (piece + 1) * kRowsPerPiece);
    for (size_t i = piece * kRowsPerPiece; i < end; ++i)
      Thread(worker).AddOsCall(calls[i]);
  });
}

void ExportThread::OsCall(const Row& row, std::vector<CallRow>& calls) {
  CallRow call;
  call.start_ns = row.IntOr(0, kNoInt);
  // A call that never returned has no end.
  call.end_ns = row.IntOr(1, kNoInt);
  call.global_tid = row.IntOr(2, kNoInt);
  call.correlation = kNoInt;
  if (call.global_tid == kNoInt) {
    filler_.segment().diagnostics.Add(
        Effect::kLost, "os_call_without_thread",
        "A call of the operating system does not say its thread.");
    return Next();
  }
  if (!Usable(call.start_ns,
              call.end_ns == kNoInt ? call.start_ns : call.end_ns))
    return Next();
  StringId name = NameOf(row, 3);
  if (!name.valid()) {
    filler_.segment().diagnostics.Add(
        Effect::kOddity, "os_call_without_name",
        "The name of a call of the operating system is not in the export.");
    name = filler_.Intern("(unnamed call)");
  }
  call.name = SharedName(name);
  calls.push_back(call);
}

void ExportThread::AddOsCall(const CallRow& call) {
  // Its end may be that of the recording.
  if (!Usable(call.start_ns, call.end_ns)) return Next();
  filler_.segment().AddSlice(call.start_ns, call.end_ns - call.start_ns,
                             filler_.Intern(facts_.SharedName(call.name)),
                             Kind::kOther,
                             names_.InternCategory(trace::kOsCallCategory),
                             Thread(call.global_tid), kNoOffset);
  Next();
}

// --------------------------------------------------------------------------
// Threads on and off processors.

std::string_view OsStateName(OsState state) {
  switch (state) {
    case OsState::kRunning:
      return trace::kStateRunning;
    case OsState::kPreempted:
      return trace::kStatePreempted;
    case OsState::kBlocked:
      return trace::kStateBlocked;
    case OsState::kUninterruptible:
      return "blocked, uninterruptible";
    case OsState::kStopped:
      return "blocked, stopped";
    case OsState::kOff:
    case OsState::kGone:
      break;
  }
  return trace::kStateOff;
}

OsState OffState(std::string_view name) {
  // It could have gone on running: it was put aside for another thread.
  if (name == "Running") return OsState::kPreempted;
  if (name == "Interruptible" || name == "Waiting" || name == "OSRuntime")
    return OsState::kBlocked;
  if (name == "Uninterruptible") return OsState::kUninterruptible;
  if (name == "Stopped") return OsState::kStopped;
  if (name == "Terminated") return OsState::kGone;
  return OsState::kOff;
}

std::vector<StateRow> StatesOf(std::vector<SchedRow> rows,
                               const Interval& recorded, uint64_t& unpaired) {
  const auto before = [](const SchedRow& a, const SchedRow& b) {
    return std::tie(a.global_tid, a.time_ns) <
           std::tie(b.global_tid, b.time_ns);
  };
  std::stable_sort(rows.begin(), rows.end(), before);
  std::vector<StateRow> states;
  for (size_t i = 0; i < rows.size(); ++i) {
    const SchedRow& row = rows[i];
    const bool last =
        i + 1 == rows.size() || rows[i + 1].global_tid != row.global_tid;
    const bool in = row.state == OsState::kRunning;
    if (!last && (rows[i + 1].state == OsState::kRunning) == in) {
      ++unpaired;
      continue;
    }
    if (row.state == OsState::kGone) continue;
    const int64_t end =
        last ? recorded.end_ns : std::min(rows[i + 1].time_ns, recorded.end_ns);
    const int64_t start = std::max(row.time_ns, recorded.start_ns);
    if (end > start)
      states.push_back({{start, end}, row.global_tid, row.state});
  }
  return states;
}

void ExportFile::ReadThreadStates() {
  const DatabaseTable* table = Table("SCHED_EVENTS");
  std::vector<SchedRow> rows = Collect<SchedRow>(
      table, {"start", "isSchedIn", "globalTid", "threadState"},
      &ExportThread::Sched);
  if (rows.empty()) return;
  // The scheduler sees the threads of the whole machine.
  const std::set<int64_t> known = KnownThreads();
  std::set<int64_t> others;
  std::erase_if(rows, [&](const SchedRow& row) {
    if (known.contains(row.global_tid)) return false;
    others.insert(row.global_tid);
    return true;
  });
  if (!others.empty()) {
    diagnostics().Add(Effect::kInfo, "thread_states_of_others",
                      "Threads of which nothing but scheduling is recorded: "
                      "their states are left out.",
                      kNoOffset, others.size());
  }
  if (!table->Has("threadState")) {
    diagnostics().Add(Effect::kInfo, "thread_states_plain",
                      "The export does not say why threads left their "
                      "processors: waiting and being put aside look alike.");
  }
  uint64_t unpaired = 0;
  const std::vector<StateRow> states =
      StatesOf(std::move(rows), Recorded(), unpaired);
  if (unpaired > 0) {
    diagnostics().Add(Effect::kOddity, "thread_state_unpaired",
                      "A thread came onto a processor twice, or left it "
                      "twice, and nothing lies between: its state there is "
                      "not known.",
                      kNoOffset, unpaired);
  }
  reader_.ForPieces(Pieces(states.size()), [&](int worker, size_t piece) {
    const size_t end = std::min(states.size(), (piece + 1) * kRowsPerPiece);
    for (size_t i = piece * kRowsPerPiece; i < end; ++i)
      Thread(worker).AddState(states[i]);
  });
}

void ExportThread::Sched(const Row& row, std::vector<SchedRow>& rows) {
  SchedRow sched;
  sched.time_ns = row.IntOr(0, kNoInt);
  sched.global_tid = row.IntOr(2, kNoInt);
  const auto in = row.Int(1);
  if (!trace::IsUsableTime(sched.time_ns) || sched.global_tid == kNoInt ||
      !in) {
    filler_.segment().diagnostics.Add(
        Effect::kLost, "thread_state_unusable",
        "A record of the scheduler lacks its time, its thread or whether the "
        "thread came or left.");
    return Next();
  }
  if (*in != 0) {
    sched.state = OsState::kRunning;
  } else if (const auto why = row.Int(3)) {
    const auto known = facts_.off_states.find(*why);
    if (known != facts_.off_states.end()) sched.state = known->second;
  }
  rows.push_back(sched);
}

void ExportThread::AddState(const StateRow& state) {
  if (!Usable(state.interval.start_ns, state.interval.end_ns)) return Next();
  filler_.segment().AddSlice(
      state.interval.start_ns, state.interval.length_ns(),
      filler_.Intern(OsStateName(state.state)), Kind::kOther,
      names_.InternCategory(trace::kThreadStateCategory),
      StateTrack(state.global_tid), kNoOffset);
  Next();
}

}  // namespace lamina::ingest::nsys
