// SPDX-License-Identifier: Apache-2.0

#include "ingest/xplane/events.h"

#include <algorithm>
#include <cstring>

#include "base/decimal.h"
#include "ingest/xplane/programs.h"

namespace lamina::ingest::xplane {

using protobuf::Walker;
using trace::Effect;
using trace::Kind;

namespace {

// floor(ps / 1000).
int64_t FloorNs(__int128 ps) {
  const __int128 ns = ps / 1000;
  return static_cast<int64_t>(ps % 1000 < 0 ? ns - 1 : ns);
}
int64_t FloorNs(int64_t ps) {
  const int64_t ns = ps / 1000;
  return ps % 1000 < 0 ? ns - 1 : ns;
}

// Of the sum, which need not fit.
int64_t FloorNs(int64_t a_ps, int64_t b_ps) {
  int64_t sum_ps = 0;
  return __builtin_add_overflow(a_ps, b_ps, &sum_ps)
             ? FloorNs(static_cast<__int128>(a_ps) + b_ps)
             : FloorNs(sum_ps);
}

}  // namespace

void EventParser::Claim(const Chunk&) {
  line_ = cutter_.line();
  first_ = cutter_.first();
}

void EventParser::Parse(const Chunk& chunk, trace::Segment& segment) {
  segment_ = &segment;
  BeginLine();
  std::string_view rest = chunk.text;
  while (!rest.empty()) {
    EventHead head;
    std::memcpy(&head, rest.data(), sizeof(head));
    rest.remove_prefix(sizeof(head));
    ReadEvent(rest.substr(0, head.size), head.offset);
    rest.remove_prefix(head.size);
  }
}

void EventParser::BeginLine() {
  if (plane_ != line_->plane) {
    // What is known by a place in the tables of the plane before.
    instructions_.clear();
    configs_.clear();
    plane_ = line_->plane;
    local_names_.assign(plane_->names.size(), StringId());
  }
  track_ = names()->InternTrack(names()->Intern(line_->pid),
                                names()->Intern(line_->tid));
  if (first_) NameTrack();
}

void EventParser::NameTrack() {
  using What = trace::TrackFact::What;
  const auto name = [&](What what, std::string_view text) {
    segment_->facts.push_back({track_, what, names()->Intern(text), 0});
  };
  name(What::kProcessName, line_->pid);
  name(What::kThreadName, line_->thread_name);
}

void EventParser::ReadEvent(std::string_view bytes, uint64_t offset) {
  ++pending_.events;
  const PlaneKind kind = plane_->kind;
  if (kind == PlaneKind::kTpu && line_->tpu == Line::Tpu::kSkipped) return;
  Event event;
  event.offset = offset;
  if (!ParseEvent(bytes, event)) return;
  switch (kind) {
    case PlaneKind::kGpu:
      DeviceEvent(event);
      break;
    case PlaneKind::kTpu:
      TpuEvent(event);
      break;
    case PlaneKind::kCustom:
      AddSlice(event, Kind::kGpuAnnotation, categories_.gpu_annotation);
      break;
    default:
      HostEvent(event);
  }
}

bool EventParser::ParseEvent(std::string_view bytes, Event& event) {
  own_stats_.clear();
  Walker walk(bytes, event.offset);
  while (walk.Next()) {
    if (walk->number == 1) event.number = walk->Int();
    if (walk->number == 2) event.offset_ps = walk->Int();
    if (walk->number == 3) event.duration_ps = walk->Int();
    if (walk->number == 4 && walk->IsBytes()) own_stats_.push_back(walk->bytes);
    if (walk->number == 5 && walk->IsNumber()) event.aggregate = true;
  }
  if (walk.damage()) {
    Lost("event_damaged",
         std::string("An event cannot be read: ") + walk.damage().what + ".",
         walk.damage().offset);
    return false;
  }
  if (event.aggregate) {
    segment_->diagnostics.Add(
        Effect::kInfo, "aggregate_event",
        "Events that count occurrences have no time; they are on no timeline.",
        event.offset);
    return false;
  }
  if (!PlaceInTime(event)) return false;
  stats_.Clear();
  unpacked_.clear();
  FindName(event);
  for (const std::string_view stat : own_stats_)
    plane_->plane.AddStat(stat, stats_, unpacked_);
  return true;
}

bool EventParser::PlaceInTime(Event& event) {
  const int64_t origin_ns = line_->origin_ns;
  if (!trace::IsUsableTime(origin_ns) ||
      !trace::IsUsableTime(FloorNs(event.offset_ps) + origin_ns)) {
    Lost("time_out_of_range", "The time of an event is out of range.",
         event.offset);
    return false;
  }
  event.start_ns = origin_ns + FloorNs(event.offset_ps);
  event.end_ns = origin_ns + FloorNs(event.offset_ps, event.duration_ps);
  if (event.duration_ps < 0 || event.duration_ns() > trace::kMaxDurationNs) {
    Lost("duration_out_of_range",
         "The duration of an event is negative or longer than 7 days.",
         event.offset);
    return false;
  }
  return true;
}

// The name of the event and the stats that all events of it share.
void EventParser::FindName(Event& event) {
  const IdTable<EventName>& table = plane_->plane.event_names;
  const size_t place = table.Place(event.number);
  if (place >= table.size()) {
    event.name = StringPool::kEmpty;
    segment_->diagnostics.Add(Effect::kOddity, "event_without_name",
                              "The number of an event names nothing.",
                              event.offset);
    return;
  }
  event.facts = &plane_->names[place];
  event.text = table.at(place).name;
  StringId& name = local_names_[place];
  if (!name.valid()) name = names()->Intern(event.text);
  event.name = name;
  for (const auto& [key, stat] : event.facts->stats) stats_.Set(key, stat);
}

// Events of devices: kernels, copies and fills of GPU streams, ops of TPU
// lines.

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

// Events of threads: API calls, Python frames, ranges, steps, allocations.

using trace::Kind;
using trace::kNoInt;
using trace::kNoRow;
using Role = NameFacts::Role;

void EventParser::HostEvent(const Event& event) {
  const Role role = event.facts == nullptr ? Role::kRange : event.facts->role;
  if (role == Role::kAllocation || role == Role::kDeallocation) {
    MemoryEvent(event);
    return;
  }
  const int64_t correlation = stats_.Int(StatKey::kCorrelationId);
  if (correlation != kNoInt && correlation != 0) {
    pending_.calls.push_back(
        {correlation, event.start_ns, event.end_ns, event.offset,
         event.shared_name(), line_->track, kNoRow,
         event.facts == nullptr ? Kind::kRuntime : event.facts->api});
    return;
  }
  Handovers(event);
  const Execution execution{line_->track, event.start_ns, event.end_ns};
  if (role == Role::kThunks) pending_.thunks.push_back(execution);
  if (role == Role::kModule) pending_.modules.push_back(execution);
  if (role == Role::kPython) {
    AddSlice(event, Kind::kPython, categories_.python, segment_->AddPython({}));
    return;
  }
  trace::OpArgs args;
  args.sequence = stats_.Int(StatKey::kStepNum);
  if (args.sequence == kNoInt) {
    AddSlice(event, Kind::kAnnotation, categories_.annotation);
  } else {
    AddSlice(event, Kind::kAnnotation, categories_.step, segment_->AddOp(args));
  }
}

void EventParser::MemoryEvent(const Event& event) {
  trace::MemoryArgs memory;
  memory.bytes = stats_.Int(StatKey::kAllocationBytes);
  if (memory.bytes == kNoInt)
    memory.bytes = stats_.Int(StatKey::kRequestedBytes);
  if (memory.bytes > 0 && event.facts->role == Role::kDeallocation)
    memory.bytes = -memory.bytes;
  memory.total_allocated = stats_.Int(StatKey::kBytesAllocated);
  memory.total_reserved = stats_.Int(StatKey::kBytesReserved);
  memory.address = stats_.Int(StatKey::kAddress);
  // "GPU_0_bfc", "gpu_host_bfc", "cpu".
  const std::string_view allocator = stats_.Text(StatKey::kAllocatorName);
  memory.device_type = 0;
  memory.device_id = 0;
  if (allocator.starts_with("GPU_")) {
    memory.device_type = 1;
    const std::string_view number = allocator.substr(4);
    const int64_t device =
        ParseInt(number.substr(0, number.find('_'))).value_or(0);
    memory.device_id =
        static_cast<int32_t>(std::max<int64_t>(device, 0) & 0xFFFF);
  }
  trace::Instants& instants = segment_->instants;
  instants.time_ns.push_back(event.start_ns);
  instants.name.push_back(event.name);
  instants.track.push_back(track_);
  instants.uid.push_back(segment_->next_uid++);
  instants.memory.push_back(segment_->AddMemory(memory));
}

// Work that one thread hands to another: producer and consumer carry equal
// (type, id).
void EventParser::Handovers(const Event& event) {
  const auto add = [&](StatKey type, StatKey id, trace::FlowPhase phase) {
    if (!stats_.Has(id)) return;
    trace::Flows& flows = segment_->flows;
    flows.time_ns.push_back(event.start_ns);
    uint64_t mixed = static_cast<uint64_t>(stats_.Int(id)) * 31;
    if (stats_.Has(type)) mixed += static_cast<uint64_t>(stats_.Int(type));
    flows.id.push_back(static_cast<int64_t>(mixed >> 2));
    flows.track.push_back(track_);
    flows.phase.push_back(phase);
    flows.kind.push_back(trace::FlowKind::kOther);
    flows.uid.push_back(segment_->next_uid);
  };
  add(StatKey::kProducerType, StatKey::kProducerId, trace::FlowPhase::kStart);
  add(StatKey::kConsumerType, StatKey::kConsumerId, trace::FlowPhase::kFinish);
}

}  // namespace lamina::ingest::xplane
