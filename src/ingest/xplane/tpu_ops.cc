// SPDX-License-Identifier: Apache-2.0
//
// Loops and calls enclose the ops inside. Device time is self time, in pieces
// where something ran inside; an op of the host tree stands for each event and
// links the pieces, as there are no launches.
#include <algorithm>
#include <tuple>

#include "base/decimal.h"
#include "ingest/xplane/runs.h"

namespace lamina::ingest::xplane {

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
