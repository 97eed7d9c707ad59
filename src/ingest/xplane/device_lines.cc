// SPDX-License-Identifier: Apache-2.0
//
// Events of devices: kernels, copies and fills of GPU streams, ops of TPU
// lines.
#include <algorithm>
#include <tuple>

#include "base/decimal.h"
#include "ingest/xplane/details.h"
#include "ingest/xplane/lines.h"

namespace lamina::ingest::xplane {

using trace::Kind;
using trace::kNoInt;
using trace::kNoRow;

void LineReader::DeviceEvent(const Line& line, const Event& event) {
  Kind kind = Kind::kKernel;
  if (event.name != nullptr) {
    if (!event.name->kind) event.name->kind = DeviceKindOf(event.text);
    kind = *event.name->kind;
  }
  if (stats_.Has(StatKey::kMemcpyDetails)) kind = Kind::kMemcpy;
  if (stats_.Has(StatKey::kMemsetDetails)) kind = Kind::kMemset;
  trace::DeviceArgs args;
  args.correlation = stats_.Int(StatKey::kCorrelationId);
  if (args.correlation == 0) args.correlation = kNoInt;
  args.device = line.device;
  args.context = stats_.Int(StatKey::kContextId);
  args.stream = line.id;
  args.graph_id = stats_.Int(StatKey::kGraphId);
  args.graph_node_id = stats_.Int(StatKey::kGraphNodeId);
  if (kind == Kind::kMemcpy)
    args.bytes = ParseCopySize(stats_.Text(StatKey::kMemcpyDetails));
  if (kind == Kind::kMemset)
    args.bytes = ParseCopySize(stats_.Text(StatKey::kMemsetDetails));
  const std::string_view details = stats_.Text(StatKey::kKernelDetails);
  if (!details.empty()) {
    trace::LaunchConfig config = ParseKernelDetails(details);
    if (config.occupancy_pct < 0 && stats_.Has(StatKey::kOccupancy)) {
      const double percent = stats_[StatKey::kOccupancy].Number();
      if (percent > 0 && percent <= 100) config.occupancy_pct = percent;
    }
    args.config = rows_.names().InternConfig(config);
  }
  const StringId name = NameOf(event);
  const uint32_t instruction = InstructionOf(stats_.Text(StatKey::kHloOp));
  const int64_t duration = event.end_ns - event.start_ns;
  if (instruction == kNoRow && kind == Kind::kKernel) {
    pending_.nameless.push_back({args, event.start_ns, duration, event.offset,
                                 name, line.track, line.device_row});
    return;
  }
  if (instruction != kNoRow && args.correlation != kNoInt) {
    pending_.launches.push_back({args.correlation, event.start_ns,
                                 line.device_row, instruction, kNoRow, name});
  }
  args.collective = CollectiveOf(instruction);
  const uint8_t category = kind == Kind::kKernel   ? rows_.kernel
                           : kind == Kind::kMemcpy ? rows_.memcpy
                                                   : rows_.memset;
  rows_.AddSlice(event.start_ns, duration, name, kind, category, line.track,
                 event.offset, rows_.segment().AddDevice(args));
}

void LineReader::TpuEvent(const Line& line, const Event& event) {
  const int64_t duration = event.end_ns - event.start_ns;
  const StringId name = NameOf(event);
  if (line.tpu == Line::Tpu::kOps) {
    tpu_ops_.push_back({event.start_ns, event.end_ns, event.offset,
                        InstructionOf(InstructionNameOf(event.text)), name});
    return;
  }
  if (line.tpu == Line::Tpu::kModules) {
    rows_.AddSlice(event.start_ns, duration, name, Kind::kGpuAnnotation,
                   rows_.Category("gpu_user_annotation"), line.track,
                   event.offset);
    return;
  }
  trace::OpArgs args;
  args.sequence = stats_.Int(StatKey::kGroupId);
  if (const auto number = ParseInt(event.text)) args.sequence = *number;
  rows_.AddSlice(event.start_ns, duration, name, Kind::kAnnotation,
                 rows_.Category(trace::kStepCategory), line.track, event.offset,
                 rows_.segment().AddOp(args));
}

// Loops and calls enclose the ops inside. Device time is self time, in pieces
// where something ran inside; an op of the host tree stands for each event and
// links the pieces, as there are no launches.
void LineReader::EmitTpuOps(const Line& line) {
  std::stable_sort(tpu_ops_.begin(), tpu_ops_.end(),
                   [](const TpuOp& a, const TpuOp& b) {
                     return std::tuple(a.start_ns, -a.end_ns) <
                            std::tuple(b.start_ns, -b.end_ns);
                   });
  std::string tid;
  AppendInt(tid, line.device);
  tid += "/ops of line ";
  AppendInt(tid, line.id);
  const trace::TrackId ops = rows_.Track(ProcessOf(line), tid);
  rows_.Name(ops, trace::TrackFact::What::kThreadName,
             "XLA program of TPU " + std::to_string(line.device));
  struct Open {
    const TpuOp* op;
    int64_t external_id;
    int64_t at_ns;  // self time before it is emitted
    bool any = false;
  };
  std::vector<Open> open;
  const uint8_t category = rows_.Category("kernel");
  const auto piece = [&](Open& top, int64_t until, bool last) {
    if (until <= top.at_ns && (top.any || !last)) return;
    trace::DeviceArgs args;
    args.external_id = top.external_id;
    args.device = line.device;
    args.stream = line.id;
    args.collective = CollectiveOf(top.op->instruction);
    rows_.AddSlice(top.at_ns, std::max<int64_t>(0, until - top.at_ns),
                   top.op->name, Kind::kKernel, category, line.track,
                   top.op->offset, rows_.segment().AddDevice(args));
    top.any = true;
  };
  const auto close = [&] {
    Open top = open.back();
    open.pop_back();
    piece(top, top.op->end_ns, true);
    if (!open.empty())
      open.back().at_ns = std::max(open.back().at_ns, top.op->end_ns);
  };
  for (const TpuOp& op : tpu_ops_) {
    while (!open.empty() && op.start_ns >= open.back().op->end_ns) close();
    if (!open.empty()) {
      piece(open.back(), op.start_ns, false);
      open.back().at_ns = std::max(open.back().at_ns, op.start_ns);
    }
    Run run;
    run.track = ops;
    run.start_ns = op.start_ns;
    run.end_ns = op.end_ns;
    run.device = line.device_row;
    run.instruction = op.instruction;
    run.external_id = pending_.next_external_id++;
    if (op.instruction != kNoRow) pending_.runs.push_back(run);
    open.push_back({&op, run.external_id, op.start_ns});
  }
  while (!open.empty()) close();
  tpu_ops_.clear();
}

}  // namespace lamina::ingest::xplane
