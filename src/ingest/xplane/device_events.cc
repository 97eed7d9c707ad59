// SPDX-License-Identifier: Apache-2.0
//
// Events of devices: kernels, copies and fills of GPU streams, ops of TPU
// lines.
#include "base/decimal.h"
#include "ingest/xplane/details.h"
#include "ingest/xplane/events.h"

namespace lamina::ingest::xplane {

using trace::Kind;
using trace::kNoInt;
using trace::kNoRow;

void EventParser::DeviceEvent(const Event& event) {
  Kind kind = event.facts == nullptr ? Kind::kKernel : event.facts->device;
  if (stats_.Has(StatKey::kMemcpyDetails)) kind = Kind::kMemcpy;
  if (stats_.Has(StatKey::kMemsetDetails)) kind = Kind::kMemset;
  trace::DeviceArgs args;
  args.correlation = stats_.Int(StatKey::kCorrelationId);
  if (args.correlation == 0) args.correlation = kNoInt;
  args.device = line_->device;
  args.context = stats_.Int(StatKey::kContextId);
  args.stream = line_->id;
  args.graph_id = stats_.Int(StatKey::kGraphId);
  args.graph_node_id = stats_.Int(StatKey::kGraphNodeId);
  if (kind == Kind::kMemcpy)
    args.bytes = ParseCopySize(stats_.Text(StatKey::kMemcpyDetails));
  if (kind == Kind::kMemset)
    args.bytes = ParseCopySize(stats_.Text(StatKey::kMemsetDetails));
  Config* const config = ConfigOfDetails();
  const Instruction& instruction = InstructionOf(
      stats_.Text(StatKey::kHloOp),
      stats_.Has(StatKey::kHloOp) && stats_[StatKey::kHloOp].by_reference,
      event.offset);
  if (instruction.number == kNoRow && kind == Kind::kKernel) {
    if (config != nullptr) args.config = SharedRow(*config);
    pending_.nameless.push_back({args, event.start_ns, event.duration_ns(),
                                 event.offset, event.shared_name(),
                                 line_->track, line_->device_row});
    return;
  }
  if (instruction.number != kNoRow && args.correlation != kNoInt) {
    pending_.launches.push_back({args.correlation, event.start_ns,
                                 line_->device_row, instruction.number, kNoRow,
                                 event.shared_name()});
  }
  if (config != nullptr) args.config = config->row;
  args.collective = CollectiveOf(instruction);
  const uint8_t category = kind == Kind::kKernel   ? categories_.kernel
                           : kind == Kind::kMemcpy ? categories_.memcpy
                                                   : categories_.memset;
  AddSlice(event, kind, category, segment_->AddDevice(args));
}

void EventParser::TpuEvent(const Event& event) {
  if (line_->tpu == Line::Tpu::kOps) {
    const Instruction& instruction = InstructionOf(
        InstructionNameOf(event.text), event.facts != nullptr, event.offset);
    pending_.tpu_ops.push_back({event.start_ns, event.end_ns, event.offset,
                                line_->tpu_line, instruction.number,
                                event.shared_name()});
    return;
  }
  if (line_->tpu == Line::Tpu::kModules) {
    AddSlice(event, Kind::kGpuAnnotation, categories_.gpu_annotation);
    return;
  }
  trace::OpArgs args;
  args.sequence = stats_.Int(StatKey::kGroupId);
  if (const auto number = ParseInt(event.text)) args.sequence = *number;
  AddSlice(event, Kind::kAnnotation, categories_.step, segment_->AddOp(args));
}

// What an event ran. `stays`: the text stands in a table of the plane, where it
// needs to be looked up once.
const EventParser::Instruction& EventParser::InstructionOf(std::string_view op,
                                                           bool stays,
                                                           uint64_t offset) {
  static const Instruction kNone;
  if (op.empty()) return kNone;
  const void* module = nullptr;
  if (stats_.Has(StatKey::kHloModule)) {
    module = stats_[StatKey::kHloModule].text.data();
    stays = stays && stats_[StatKey::kHloModule].by_reference;
  }
  if (!stays) return instruction_ = FindInstruction(op, offset);
  const auto [it, is_new] = instructions_.try_emplace(
      std::tuple(static_cast<const void*>(op.data()), module,
                 stats_.Int(StatKey::kProgramId)));
  if (is_new) it->second = FindInstruction(op, offset);
  return it->second;
}

EventParser::Instruction EventParser::FindInstruction(std::string_view op,
                                                      uint64_t offset) {
  Programs::Query query;
  query.op = op;
  query.module = stats_.Text(StatKey::kHloModule);
  query.program = stats_.Int(StatKey::kProgramId);
  query.op_name = stats_.Text(StatKey::kOpName);
  if (query.op_name.empty()) {
    // ROCm writes the kind of a module here, which is no name.
    query.op_name = stats_.Text(StatKey::kTfOp);
    if (query.op_name.ends_with(':')) query.op_name.remove_suffix(1);
    if (query.op_name == "XlaModule") query.op_name = {};
  }
  query.flops = stats_.Int(StatKey::kModelFlops);
  if (query.flops == kNoInt) query.flops = stats_.Int(StatKey::kFlops);
  query.bytes = stats_.Int(StatKey::kBytesAccessed);
  query.source = stats_.Text(StatKey::kSource);
  query.category = stats_.Text(StatKey::kHloCategory);
  query.offset = offset;
  const std::lock_guard lock(shared_.mutex);
  Instruction found;
  found.number = shared_.programs.Find(query);
  const RanInstruction& ran = shared_.programs.ran(found.number);
  found.is_collective = ran.is_collective;
  if (!ran.is_collective) return found;
  found.collective = ran.collective;
  for (StringId* text : {&found.collective.name, &found.collective.dtype,
                         &found.collective.group_ranks}) {
    if (text->valid()) *text = names()->Intern(shared_.names.Text(*text));
  }
  return found;
}

uint32_t EventParser::CollectiveOf(const Instruction& instruction) {
  return instruction.is_collective
             ? segment_->AddCollective(instruction.collective)
             : kNoRow;
}

EventParser::Config* EventParser::ConfigOfDetails() {
  if (!stats_.Has(StatKey::kKernelDetails)) return nullptr;
  const Stat& details = stats_[StatKey::kKernelDetails];
  if (details.text.empty()) return nullptr;
  if (!details.by_reference) return &(config_ = ParseConfig());
  double occupancy = -1;
  if (stats_.Has(StatKey::kOccupancy) &&
      stats_[StatKey::kOccupancy].Number() > 0)
    occupancy = stats_[StatKey::kOccupancy].Number();
  const auto [it, is_new] = configs_.try_emplace(
      std::pair(static_cast<const void*>(details.text.data()), occupancy));
  if (is_new) it->second = ParseConfig();
  return &it->second;
}

EventParser::Config EventParser::ParseConfig() {
  Config config;
  config.values = ParseKernelDetails(stats_.Text(StatKey::kKernelDetails));
  if (config.values.occupancy_pct < 0 && stats_.Has(StatKey::kOccupancy)) {
    const double percent = stats_[StatKey::kOccupancy].Number();
    if (percent > 0 && percent <= 100) config.values.occupancy_pct = percent;
  }
  config.row = names()->InternConfig(config.values);
  return config;
}

uint32_t EventParser::SharedRow(Config& config) {
  if (config.shared_row == kNoRow) {
    const std::lock_guard lock(shared_.mutex);
    config.shared_row = shared_.names.InternConfig(config.values);
  }
  return config.shared_row;
}

}  // namespace lamina::ingest::xplane
