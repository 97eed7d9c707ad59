// SPDX-License-Identifier: Apache-2.0
//
// What waits for the end of the file becomes rows of the trace.

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/decimal.h"
#include "ingest/xplane/runs.h"

namespace lamina::ingest::xplane {

using trace::Kind;
using trace::TrackId;

namespace {

// Rows and instructions in an order that does not depend on which thread read
// what.
void OrderRows(Pending& pending, Programs& programs) {
  const std::vector<uint32_t> numbers = programs.Order();
  for (Launch& launch : pending.launches)
    launch.instruction = numbers[launch.instruction];
  for (TpuOp& op : pending.tpu_ops) {
    if (op.instruction != trace::kNoRow)
      op.instruction = numbers[op.instruction];
  }
  std::sort(pending.nameless.begin(), pending.nameless.end(),
            [](const NamelessKernel& a, const NamelessKernel& b) {
              return a.offset < b.offset;
            });
}

class Emitter {
 public:
  Emitter(Pending& pending, Programs& programs, Rows& rows)
      : pending_(pending),
        programs_(programs),
        rows_(rows),
        runs_(MakeRuns(pending, rows)),
        scopes_(MakeScopes(runs_, programs)) {}

  void Instructions() {
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
  void Host() {
    SortBackwards(scopes_, [](const Scope& s) {
      return std::tuple(s.track, s.start_ns, s.depth, s.end_ns, s.number);
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
                   Kind::kPython, rows_.categories.python, scope.track, 0,
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
                   Kind::kOp, rows_.categories.op, run.track, 0,
                   rows_.segment().AddOp(args));
  }

  void EmitCall(const Call& call) {
    trace::ApiArgs args;
    args.correlation = call.correlation;
    rows_.AddSlice(call.start_ns, call.end_ns - call.start_ns, call.name,
                   call.kind,
                   call.kind == Kind::kDriver ? rows_.categories.driver
                                              : rows_.categories.runtime,
                   call.track, call.offset, rows_.segment().AddApi(args));
  }

  void Nameless() {
    auto& kernels = pending_.nameless;
    std::reverse(kernels.begin(), kernels.end());
    for (; !kernels.empty(); kernels.Pop()) {
      const NamelessKernel& kernel = kernels.back();
      rows_.AddSlice(kernel.start_ns, kernel.dur_ns, kernel.name, Kind::kKernel,
                     rows_.categories.kernel, kernel.track, kernel.offset,
                     rows_.segment().AddDevice(kernel.args));
    }
    rows_.Flush();
  }

  Pending& pending_;
  Programs& programs_;
  Rows& rows_;
  Waiting<Run> runs_;
  Waiting<Scope> scopes_;
};

}  // namespace

void EmitPending(Pending& pending, Programs& programs, Rows& rows) {
  OrderRows(pending, programs);
  EmitTpuOps(pending, programs, rows);
  Emitter emitter(pending, programs, rows);
  emitter.Instructions();
  emitter.Host();
  emitter.Nameless();
}

// Loops and calls enclose the ops inside. Device time is self time, in pieces
// where something ran inside; an op of the host tree stands for each event and
// links the pieces, as there are no launches.

using trace::kNoRow;

namespace {

// The ops of one line, in order of time, the outer ones first.
class TpuLineEmitter {
 public:
  TpuLineEmitter(const TpuLine& line, Pending& pending,
                 const Programs& programs, Rows& rows)
      : line_(line), pending_(pending), programs_(programs), rows_(rows) {
    std::string tid;
    AppendInt(tid, line.device);
    tid += "/ops of line ";
    AppendInt(tid, line.id);
    ops_ = rows.Track("TPU", tid);
    rows.Name(ops_, trace::TrackFact::What::kThreadName,
              "XLA program of TPU " + std::to_string(line.device));
  }

  void Add(const TpuOp& op) {
    while (!open_.empty() && op.start_ns >= open_.back().op.end_ns) Close();
    if (!open_.empty()) {
      EmitPiece(open_.back(), op.start_ns, false);
      open_.back().at_ns = std::max(open_.back().at_ns, op.start_ns);
    }
    Run run;
    run.track = ops_;
    run.start_ns = op.start_ns;
    run.end_ns = op.end_ns;
    run.device = line_.device_row;
    run.instruction = op.instruction;
    run.external_id = pending_.next_external_id++;
    if (op.instruction != kNoRow) pending_.runs.push_back(run);
    open_.push_back({op, run.external_id, op.start_ns});
  }

  void CloseAll() {
    while (!open_.empty()) Close();
  }

 private:
  struct Open {
    TpuOp op;
    int64_t external_id;
    int64_t at_ns;  // self time before it is emitted
    bool any = false;
  };

  void Close() {
    Open top = open_.back();
    open_.pop_back();
    EmitPiece(top, top.op.end_ns, true);
    if (!open_.empty())
      open_.back().at_ns = std::max(open_.back().at_ns, top.op.end_ns);
  }

  void EmitPiece(Open& top, int64_t until_ns, bool last) {
    if (until_ns <= top.at_ns && (top.any || !last)) return;
    trace::DeviceArgs args;
    args.external_id = top.external_id;
    args.device = line_.device;
    args.stream = line_.id;
    const uint32_t instruction = top.op.instruction;
    if (instruction != kNoRow && programs_.ran(instruction).is_collective) {
      args.collective =
          rows_.segment().AddCollective(programs_.ran(instruction).collective);
    }
    rows_.AddSlice(top.at_ns, std::max<int64_t>(0, until_ns - top.at_ns),
                   top.op.name, trace::Kind::kKernel, rows_.categories.kernel,
                   line_.track, top.op.offset, rows_.segment().AddDevice(args));
    top.any = true;
  }

  const TpuLine& line_;
  Pending& pending_;
  const Programs& programs_;
  Rows& rows_;
  trace::TrackId ops_;
  std::vector<Open> open_;
};

}  // namespace

void EmitTpuOps(Pending& pending, const Programs& programs, Rows& rows) {
  auto& ops = pending.tpu_ops;
  SortBackwards(ops, [](const TpuOp& op) {
    return std::tuple(op.line, op.start_ns, -op.end_ns, op.offset);
  });
  while (!ops.empty()) {
    const uint32_t line = ops.back().line;
    TpuLineEmitter emitter(pending.tpu_lines[line], pending, programs, rows);
    for (; !ops.empty() && ops.back().line == line; ops.Pop())
      emitter.Add(ops.back());
    emitter.CloseAll();
  }
}

}  // namespace lamina::ingest::xplane
