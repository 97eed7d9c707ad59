// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/lines.h"

#include <algorithm>
#include <tuple>

#include "base/decimal.h"
#include "base/text.h"
#include "ingest/xplane/details.h"

namespace lamina::ingest::xplane {

using protobuf::Field;
using protobuf::Stream;
using protobuf::Walker;
using trace::Effect;
using trace::Kind;
using trace::kNoInt;
using trace::kNoRow;

namespace {

constexpr size_t kMaxEvent = size_t{64} << 20;
constexpr std::string_view kHostPid = "/host:CPU";

// floor(ps / 1000).
int64_t FloorNs(__int128 ps) {
  const __int128 ns = ps / 1000;
  return static_cast<int64_t>(ps % 1000 < 0 ? ns - 1 : ns);
}

std::string_view AfterLast(std::string_view text, char separator) {
  const size_t at = text.rfind(separator);
  return at == std::string_view::npos ? text : text.substr(at + 1);
}

}  // namespace

PlaneKind PlaneKindOf(std::string_view name) {
  if (name.starts_with("/host:metadata") || name == "Task Environment")
    return PlaneKind::kMetadata;
  if (name.starts_with("/host:")) return PlaneKind::kHost;
  if (Contains(name, "/stream:")) return PlaneKind::kSkipped;
  if (name.starts_with("/device:GPU:")) return PlaneKind::kGpu;
  if (name.starts_with("/device:TPU:")) {
    return Contains(name, "SparseCore") ? PlaneKind::kSkipped : PlaneKind::kTpu;
  }
  if (name.starts_with("/device:")) return PlaneKind::kCustom;
  return PlaneKind::kSkipped;
}

int64_t DeviceNumber(std::string_view plane) {
  return ParseInt(AfterLast(plane, ':')).value_or(0);
}

void LineReader::ReadPlane(Stream& stream, const Plane& plane) {
  // Its keys are places in the tables of the plane before.
  instructions_.clear();
  const PlaneKind kind = PlaneKindOf(plane.name);
  if (kind == PlaneKind::kMetadata) return;
  if (kind == PlaneKind::kSkipped) {
    if (plane.lines > 0) {
      diagnostics_.Add(
          Effect::kInfo, "plane_not_read",
          Contains(plane.name, "/stream:")
              ? "Planes of an old TensorFlow profiler are not read: record "
                "with a newer one."
              : "Planes that repeat or refine what other planes show (sparse "
                "cores, chips) are not read.",
          plane.offset);
    }
    return;
  }
  while (stream.Next()) {
    if (stream.field().number != 3 || !stream.field().IsBytes()) continue;
    Line line;
    line.plane = &plane;
    line.kind = kind;
    line.device = kind == PlaneKind::kHost ? 0 : DeviceNumber(plane.name);
    line.device_row = pending_.Device(line.device);
    stream.Enter();
    ReadLine(stream, line);
    bool whole = true;
    if (stream.damage()) {
      Lost("line_damaged",
           std::string("A line of events is not read to its end: ") +
               stream.damage().what + ".",
           stream.damage().offset);
      whole = stream.Recover();
    }
    stream.Leave();
    if (!whole) return;
  }
}

void LineReader::ReadLine(Stream& stream, Line& line) {
  while (stream.Next()) {
    const Field& field = stream.field();
    switch (field.number) {
      case 1:
        line.id = field.Int();
        break;
      case 2:
        if (stream.Take(kMaxEvent)) line.name = stream.bytes();
        break;
      case 3:
        if (line.begun && line.origin_ns != field.Int()) {
          Lost("line_time_behind_events",
               "The time of a line stands behind its events; their times are "
               "wrong by it.",
               field.offset);
          break;
        }
        line.origin_ns = field.Int();
        break;
      case 4: {
        if (!field.IsBytes()) break;
        if (!line.begun) Begin(line);
        const uint64_t offset = field.offset;
        if (stream.Take(kMaxEvent)) {
          ReadEvent(stream.bytes(), offset, line);
        } else if (!stream.damage()) {
          Lost("event_too_long", "An event is longer than 64 MiB.", offset);
        }
        break;
      }
      case 11:
        if (stream.Take(kMaxEvent)) line.display_name = stream.bytes();
        break;
      default:
        break;
    }
  }
  if (!tpu_ops_.empty()) EmitTpuOps(line);
}

std::string_view LineReader::ProcessOf(const Line& line) {
  switch (line.kind) {
    case PlaneKind::kHost:
      return kHostPid;
    case PlaneKind::kGpu:
      return "GPU";
    case PlaneKind::kTpu:
      return "TPU";
    default:
      return line.plane->name;
  }
}

// The header of a line is read; its track gets its names.
void LineReader::Begin(Line& line) {
  using What = trace::TrackFact::What;
  line.begun = true;
  // Values this large count from 1970, others from the start of profiling.
  constexpr int64_t kAbsolute = 1000000000000000000;
  if (line.origin_ns > kAbsolute && profile_start_ns_ > kAbsolute)
    line.origin_ns -= profile_start_ns_;
  const bool host = line.kind == PlaneKind::kHost;
  const std::string_view pid = ProcessOf(line);
  std::string tid;
  std::string name = line.display_name.empty() ? line.name : line.display_name;
  if (!host) {
    // One process for all devices of a kind: the number tells them apart.
    AppendInt(tid, line.device);
    tid += '/';
    name = std::string(pid) + ' ' + std::to_string(line.device) + ' ' + name;
  }
  AppendInt(tid, line.id);
  line.track = rows_.Track(pid, tid);
  rows_.Name(line.track, What::kProcessName, pid);
  rows_.Name(line.track, What::kThreadName, name);
  if (line.kind == PlaneKind::kTpu) {
    line.tpu = line.name == "XLA Ops"       ? Line::Tpu::kOps
               : line.name == "Steps"       ? Line::Tpu::kSteps
               : line.name == "XLA Modules" ? Line::Tpu::kModules
                                            : Line::Tpu::kSkipped;
    if (line.tpu == Line::Tpu::kSkipped) {
      diagnostics_.Add(Effect::kInfo, "derived_line",
                       "Lines that show the time of \"XLA Ops\" again under "
                       "other names, or time beside it, are not read.");
    }
  }
}

bool LineReader::ParseEvent(std::string_view bytes, uint64_t offset,
                            const Line& line, Event& event) {
  event.offset = offset;
  Walker walk(bytes, offset);
  while (walk.Next()) {
    if (walk->number == 1) event.metadata = walk->Int();
    if (walk->number == 2) event.offset_ps = walk->Int();
    if (walk->number == 3) event.duration_ps = walk->Int();
    if (walk->number == 5 && walk->IsNumber()) event.aggregate = true;
  }
  if (walk.damage()) {
    Lost("event_damaged",
         std::string("An event cannot be read: ") + walk.damage().what + ".",
         walk.damage().offset);
    return false;
  }
  if (event.aggregate) {
    diagnostics_.Add(Effect::kInfo, "aggregate_event",
                     "Events that count occurrences have no time; they are on "
                     "no timeline.",
                     offset);
    return false;
  }
  if (!trace::IsUsableTime(line.origin_ns) ||
      !trace::IsUsableTime(FloorNs(event.offset_ps) + line.origin_ns)) {
    Lost("time_out_of_range", "The time of an event is out of range.", offset);
    return false;
  }
  event.start_ns = line.origin_ns + FloorNs(event.offset_ps);
  event.end_ns =
      line.origin_ns +
      FloorNs(static_cast<__int128>(event.offset_ps) + event.duration_ps);
  if (event.duration_ps < 0 ||
      event.end_ns - event.start_ns > trace::kMaxDurationNs) {
    Lost("duration_out_of_range",
         "The duration of an event is negative or longer than 13 days.",
         offset);
    return false;
  }
  stats_.Clear();
  unpacked_.clear();
  const auto name = line.plane->event_names.find(event.metadata);
  if (name == line.plane->event_names.end()) {
    diagnostics_.Add(Effect::kOddity, "event_without_name",
                     "The number of an event names nothing.", offset);
  } else {
    event.name = &name->second;
    event.text = name->second.name;
    line.plane->AddStats(name->second, stats_);
  }
  for (Walker own(bytes); own.Next();) {
    if (own->number == 4 && own->IsBytes())
      line.plane->AddStat(own->bytes, stats_, unpacked_);
  }
  return true;
}

void LineReader::ReadEvent(std::string_view bytes, uint64_t offset,
                           Line& line) {
  ++events_;
  if (line.kind == PlaneKind::kTpu && line.tpu == Line::Tpu::kSkipped) return;
  Event event;
  if (!ParseEvent(bytes, offset, line, event)) return;
  switch (line.kind) {
    case PlaneKind::kGpu:
      DeviceEvent(line, event);
      break;
    case PlaneKind::kTpu:
      TpuEvent(line, event);
      break;
    case PlaneKind::kCustom:
      rows_.AddSlice(event.start_ns, event.end_ns - event.start_ns,
                     rows_.names().Intern(event.text), Kind::kGpuAnnotation,
                     rows_.Category("gpu_user_annotation"), line.track, offset);
      break;
    default:
      HostEvent(line, event);
  }
}

// The number of the instruction that an event ran; kNoRow for none.
uint32_t LineReader::InstructionOf(std::string_view op) {
  if (op.empty()) return kNoRow;
  // A name that stays where it is needs to be looked up once.
  const int64_t program = stats_.Int(StatKey::kProgramId);
  const bool stays = program != kNoInt && stats_.Has(StatKey::kHloOp) &&
                     stats_[StatKey::kHloOp].by_reference &&
                     stats_[StatKey::kHloOp].text.data() == op.data();
  if (!stays) return FindInstruction(op);
  const auto [it, is_new] = instructions_.try_emplace(
      std::pair(static_cast<const void*>(op.data()), program), kNoRow);
  if (is_new) it->second = FindInstruction(op);
  return it->second;
}

uint32_t LineReader::FindInstruction(std::string_view op) {
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
  return programs_.Find(query);
}

uint32_t LineReader::CollectiveOf(uint32_t instruction) {
  if (instruction == kNoRow || !programs_.ran(instruction).is_collective)
    return kNoRow;
  return rows_.segment().AddCollective(programs_.ran(instruction).collective);
}

StringId LineReader::NameOf(const Event& event) {
  if (event.name == nullptr) return rows_.names().Intern("");
  if (!event.name->id.valid())
    event.name->id = rows_.names().Intern(event.name->name);
  return event.name->id;
}

void LineReader::HostEvent(const Line& line, const Event& event) {
  const int64_t duration = event.end_ns - event.start_ns;
  if (event.text == "MemoryAllocation" || event.text == "MemoryDeallocation") {
    MemoryEvent(line, event);
    return;
  }
  const StringId name = NameOf(event);
  const int64_t correlation = stats_.Int(StatKey::kCorrelationId);
  if (correlation != kNoInt && correlation != 0) {
    pending_.calls.push_back({correlation, event.start_ns, event.end_ns,
                              event.offset, name, line.track, kNoRow,
                              ApiKindOf(event.text)});
    return;
  }
  Handovers(line, event);
  if (event.text == "GpuExecutable::ExecuteThunks")
    pending_.thunks.push_back({line.track, event.start_ns, event.end_ns});
  if (event.text.ends_with(":XLA GPU module"))
    pending_.modules.push_back({line.track, event.start_ns, event.end_ns});
  if (event.text.starts_with('$')) {
    rows_.AddSlice(event.start_ns, duration, name, Kind::kPython, rows_.python,
                   line.track, event.offset, rows_.segment().AddPython({}));
    return;
  }
  trace::OpArgs args;
  args.sequence = stats_.Int(StatKey::kStepNum);
  const uint8_t category =
      args.sequence != kNoInt ? rows_.step : rows_.annotation;
  rows_.AddSlice(
      event.start_ns, duration, name, Kind::kAnnotation, category, line.track,
      event.offset,
      args.sequence != kNoInt ? rows_.segment().AddOp(args) : kNoRow);
}

void LineReader::MemoryEvent(const Line& line, const Event& event) {
  const auto known = [](int64_t value) { return std::max<int64_t>(value, 0); };
  trace::MemoryArgs memory;
  memory.bytes = stats_.Int(StatKey::kAllocationBytes);
  if (memory.bytes == kNoInt)
    memory.bytes = stats_.Int(StatKey::kRequestedBytes);
  if (memory.bytes != kNoInt && memory.bytes > 0 &&
      event.text == "MemoryDeallocation")
    memory.bytes = -memory.bytes;
  memory.total_allocated = stats_.Int(StatKey::kBytesAllocated);
  memory.total_reserved = stats_.Int(StatKey::kBytesReserved);
  memory.address = stats_.Int(StatKey::kAddress);
  // "GPU_0_bfc", "gpu_host_bfc", "cpu".
  const std::string_view allocator = stats_.Text(StatKey::kAllocatorName);
  if (allocator.starts_with("GPU_")) {
    memory.device_type = 1;
    const std::string_view number = allocator.substr(4);
    memory.device_id = static_cast<int32_t>(
        known(ParseInt(number.substr(0, number.find('_'))).value_or(0)) &
        0xFFFF);
  } else {
    memory.device_type = 0;
    memory.device_id = 0;
  }
  trace::Segment& segment = rows_.segment();
  trace::Instants& instants = segment.instants;
  instants.time_ns.push_back(event.start_ns);
  instants.name.push_back(rows_.names().Intern(event.text));
  instants.track.push_back(line.track);
  instants.uid.push_back(segment.next_uid++);
  instants.memory.push_back(segment.AddMemory(memory));
}

// Work that one thread hands to another: producer and consumer carry equal
// (type, id).
void LineReader::Handovers(const Line& line, const Event& event) {
  const auto add = [&](StatKey type, StatKey id, trace::FlowPhase phase,
                       int64_t time_ns) {
    if (!stats_.Has(id)) return;
    trace::Flows& flows = rows_.segment().flows;
    flows.time_ns.push_back(time_ns);
    uint64_t mixed = static_cast<uint64_t>(stats_.Int(id)) * 31;
    if (stats_.Has(type)) mixed += static_cast<uint64_t>(stats_.Int(type));
    flows.id.push_back(static_cast<int64_t>(mixed >> 2));
    flows.track.push_back(line.track);
    flows.phase.push_back(phase);
    flows.kind.push_back(trace::FlowKind::kOther);
    flows.uid.push_back(rows_.segment().next_uid);
  };
  add(StatKey::kProducerType, StatKey::kProducerId, trace::FlowPhase::kStart,
      event.start_ns);
  add(StatKey::kConsumerType, StatKey::kConsumerId, trace::FlowPhase::kFinish,
      event.start_ns);
}

}  // namespace lamina::ingest::xplane
