// SPDX-License-Identifier: Apache-2.0

#include "ingest/pftrace/events.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/decimal.h"
#include "trace/categories.h"

namespace lamina::ingest::pftrace {

using trace::Kind;

namespace {

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

// Names such as cudaLaunchKernel, hipMemcpyAsync; cuLaunchKernel is a driver
// call.
Kind ApiOf(std::string_view name) {
  if (name.starts_with("cuda") && name.size() > 4 && IsUpper(name[4]))
    return Kind::kRuntime;
  if (name.starts_with("hip") && name.size() > 3 && IsUpper(name[3]))
    return Kind::kRuntime;
  if (name.starts_with("cu") && name.size() > 2 && IsUpper(name[2]))
    return Kind::kDriver;
  if (name.starts_with("hsa_")) return Kind::kDriver;
  return Kind::kOther;
}

}  // namespace

Kind KindOfCategory(std::string_view category) {
  struct Row {
    std::string_view category;
    Kind kind;
  };
  static constexpr std::array<Row, 7> kRows = {{
      {"hip_api", Kind::kRuntime},
      {"hsa_api", Kind::kDriver},
      {"rccl_api", Kind::kRuntime},
      {"marker_api", Kind::kAnnotation},
      {"kernel_dispatch", Kind::kKernel},
      {"memory_copy", Kind::kMemcpy},
      {"cuda_api", Kind::kRuntime},
  }};
  for (const Row& row : kRows) {
    if (row.category == category) return row.kind;
  }
  return trace::KindOfCategory(category);
}

Kind KindOfEvent(std::string_view name, const Hints& hints) {
  const Kind api = ApiOf(name);
  if (api != Kind::kOther) return api;
  if (hints.python || name.starts_with("nn.Module: ")) return Kind::kPython;
  if (name.starts_with("ProfilerStep#")) return Kind::kAnnotation;
  if (hints.stream || hints.grid) {
    if (name.starts_with("Memcpy")) return Kind::kMemcpy;
    if (name.starts_with("Memset")) return Kind::kMemset;
    if (hints.grid || hints.correlation) return Kind::kKernel;
  }
  if (hints.shapes || hints.external_id) return Kind::kOp;
  return Kind::kOther;
}

using protobuf::Field;
using protobuf::Walker;
using trace::Effect;
using trace::Kind;
using trace::kNoInt;

namespace {

constexpr uint32_t kSegment = 1 << 16;

enum EventType { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4, kState = 5 };

}  // namespace

Kind EventReader::KindOf(StringId category, StringId name) {
  if (category.valid()) {
    const auto [it, is_new] = kinds_.try_emplace(category, Kind::kOther);
    if (is_new) it->second = KindOfCategory(names_.Text(category));
    if (it->second != Kind::kOther) return it->second;
    if (!names_.Text(category).empty()) return Kind::kOther;
  }
  Hints hints;
  hints.grid = args_.Has(ArgKey::kGrid);
  hints.stream = args_.Has(ArgKey::kStream);
  hints.bytes = args_.Has(ArgKey::kBytes);
  hints.correlation = args_.Has(ArgKey::kCorrelation);
  hints.shapes = args_.Has(ArgKey::kInputDims) || args_.Has(ArgKey::kSequence);
  hints.external_id =
      args_.Has(ArgKey::kExternalId) || args_.Has(ArgKey::kExternalIdOld);
  hints.python =
      args_.Has(ArgKey::kPythonId) || args_.Has(ArgKey::kPythonModuleId);
  return KindOfEvent(names_.Text(name), hints);
}

// What an event leaves to its track: device and stream of a lane.
void EventReader::CompleteArgs(Kind kind, const Track& track) {
  const auto set = [&](ArgKey key, int64_t number) {
    if (number == kNoInt || args_.Has(key)) return;
    EventArgs::Value value;
    value.integer = number;
    args_.Set(key, value);
  };
  if (raw_.correlation != kNoInt) set(ArgKey::kCorrelation, raw_.correlation);
  const bool launch = trace::IsApiCall(kind) || trace::IsDevice(kind);
  if (launch && flow_ids_.size() == 1 &&
      flow_ids_[0] <= static_cast<uint64_t>(INT64_MAX))
    set(ArgKey::kCorrelation, static_cast<int64_t>(flow_ids_[0]));
  if (!trace::IsDevice(kind)) return;
  set(ArgKey::kDevice, track.device);
  set(ArgKey::kStream, track.stream);
  set(ArgKey::kQueue, track.queue);
  // rocprofv3 counts the grid in threads.
  if (!args_.Has(ArgKey::kGrid) || !args_.Has(ArgKey::kBlock)) return;
  EventArgs::Value grid = args_[ArgKey::kGrid];
  const EventArgs::Value& block = args_[ArgKey::kBlock];
  if (grid.type == EventArgs::Value::Type::kInt &&
      block.type == EventArgs::Value::Type::kInt && block.integer > 0) {
    grid.integer = (grid.integer + block.integer - 1) / block.integer;
    args_.Set(ArgKey::kGrid, grid);
  }
}

void EventReader::AddCounter(Track& track, int64_t time_ns, double value) {
  if (track.incremental) value += track.last_value;
  track.last_value = value;
  trace::Counters& counters = segment_.counters;
  counters.time_ns.push_back(time_ns);
  counters.name.push_back(
      names_.Intern(track.name.empty() ? "counter" : track.name));
  counters.series.push_back(names_.Intern("value"));
  counters.track.push_back(track.id);
  counters.value.push_back(value * track.multiplier);
  counters.uid.push_back(segment_.next_uid);
}

void EventReader::ReadFields(const Field& event, const Sequence& sequence) {
  raw_ = Raw{};
  raw_.track = sequence.track;
  args_.Clear(&names_);
  json_.clear();
  json_.reserve(trace::kArgKeys);
  flow_ids_.clear();
  extra_tracks_.clear();
  extra_values_.clear();
  const auto known = [](const StringId* id) { return id ? *id : StringId(); };
  for (Walker walk(event); walk.Next();) {
    switch (walk->number) {
      case 3:
        ForEachVarint(walk.field(), [&](uint64_t iid) {
          if (!raw_.category.valid())
            raw_.category = known(sequence.categories.Find(iid));
        });
        break;
      case 4:
        if (walk->IsBytes() && json_.size() < json_.capacity())
          ReadArg(walk.field(), sequence);
        break;
      case 9:
        raw_.type = static_cast<int>(Small(walk->value) & 0xFF);
        break;
      case 10:
        raw_.name = known(sequence.names.Find(walk->value));
        break;
      case 11:
        raw_.track = walk->value;
        break;
      case 12:
        ForEachVarint(walk.field(), [&](uint64_t count) {
          extra_values_.push_back(
              static_cast<double>(static_cast<int64_t>(count)));
        });
        break;
      case 22:
        if (!raw_.category.valid() && walk->IsBytes())
          raw_.category = names_.Intern(walk->bytes);
        break;
      case 23:
        if (walk->IsBytes()) raw_.name = names_.Intern(walk->bytes);
        break;
      case 30:
        raw_.has_counter = true;
        raw_.counter = static_cast<double>(walk->Int());
        break;
      case 31:
        ForEachVarint(walk.field(),
                      [&](uint64_t uuid) { extra_tracks_.push_back(uuid); });
        break;
      case 36:
      case 42:
        ForEachVarint(walk.field(),
                      [&](uint64_t id) { flow_ids_.push_back(id); });
        break;
      case 44:
        raw_.has_counter = true;
        raw_.counter = walk->Double();
        break;
      case 47:
      case 48:
        ForEachFixed64(walk.field(),
                       [&](uint64_t id) { flow_ids_.push_back(id); });
        break;
      case 52:
        raw_.correlation = walk->Int();
        break;
      default:
        break;
    }
  }
  if (!raw_.name.valid()) raw_.name = StringPool::kEmpty;
}

void EventReader::AddBegin(const Track& track, int64_t time_ns,
                           uint64_t offset) {
  const Kind kind = KindOf(raw_.category, raw_.name);
  CompleteArgs(kind, track);
  kernels_ = kernels_ || kind == Kind::kKernel;
  trace::HalfSlice half;
  half.time_ns = time_ns;
  half.offset = offset;
  half.name = raw_.name;
  half.track = track.id;
  half.uid = segment_.next_uid;
  half.kind = kind;
  half.category = raw_.category.valid()
                      ? names_.InternCategory(raw_.category)
                      : names_.InternCategory(trace::CategoryOf(kind));
  half.begin = true;
  half.detail = DetailRow(kind, args_, segment_);
  segment_.halves.push_back(half);
  for (const uint64_t flow : flow_ids_) {
    flows_.push_back({flow, time_ns, args_.Int(ArgKey::kCorrelation), track.id,
                      static_cast<uint32_t>(events_ + segment_.next_uid),
                      kind});
  }
}

void EventReader::AddEnd(const Track& track, int64_t time_ns, uint64_t offset) {
  trace::HalfSlice half;
  half.time_ns = time_ns;
  half.offset = offset;
  half.track = track.id;
  half.uid = segment_.next_uid;
  segment_.halves.push_back(half);
}

void EventReader::AddInstant(const Track& track, int64_t time_ns) {
  trace::Instants& instants = segment_.instants;
  instants.time_ns.push_back(time_ns);
  instants.name.push_back(raw_.name);
  instants.track.push_back(track.id);
  instants.uid.push_back(segment_.next_uid);
  instants.memory.push_back(MemoryRow(args_, segment_));
}

void EventReader::Event(const Field& event, int64_t time_ns,
                        const Sequence& sequence, uint64_t offset) {
  ReadFields(event, sequence);
  Track& track = tracks_.Use(raw_.track, segment_);
  switch (raw_.type) {
    case kBegin:
      AddBegin(track, time_ns, offset);
      break;
    case kEnd:
      AddEnd(track, time_ns, offset);
      break;
    case kInstant:
      if (names_.Text(raw_.name) == trace::kRecordingName) {
        Recording(event, sequence);
      } else {
        AddInstant(track, time_ns);
      }
      break;
    case kCounter:
      if (raw_.has_counter) AddCounter(track, time_ns, raw_.counter);
      break;
    default:
      segment_.diagnostics.Add(Effect::kInfo, "event_type_not_read",
                               "Events that are no span, instant or counter.",
                               offset);
  }
  const auto& tracks =
      extra_tracks_.empty() ? sequence.counters : extra_tracks_;
  for (size_t i = 0; i < extra_values_.size() && i < tracks.size(); ++i)
    AddCounter(tracks_.Use(tracks[i], segment_), time_ns, extra_values_[i]);
  Next();
}

void EventReader::Next() {
  if (++segment_.next_uid < kSegment) return;
  events_ += segment_.next_uid;
  segment_.Seal();
  builder_.Append(segment_);
  segment_.Clear();
}

// GPU stages, and what waits for the end of the file.

using protobuf::Field;
using protobuf::Walker;
using trace::Effect;
using trace::FlowKind;
using trace::FlowPhase;
using trace::Kind;
using trace::kNoInt;

void EventReader::Stage(const Field& event, int64_t time_ns,
                        const Sequence& sequence, uint64_t offset) {
  Stage_ stage{};
  stage.start_ns = time_ns;
  stage.offset = offset;
  stage.args.device = 0;
  uint64_t duration = 0;
  uint64_t queue = 0;
  StringId queue_name;
  StringId stage_name;
  const auto triple = [](const Field& field) {
    std::array<uint32_t, 3> out{};
    for (Walker walk(field); walk.Next();) {
      if (walk->number >= 1 && walk->number <= 3)
        out[walk->number - 1] = Small(walk->value);
    }
    return out;
  };
  for (Walker walk(event); walk.Next();) {
    switch (walk->number) {
      case 2:
        duration = walk->value;
        break;
      case 11:
        stage.args.device = walk->Int();
        break;
      case 13:
        queue = walk->value;
        if (const StringId* text = sequence.specifications.Find(walk->value))
          queue_name = *text;
        break;
      case 14:
        if (const StringId* text = sequence.specifications.Find(walk->value))
          stage_name = *text;
        break;
      case 17:
        if (walk->IsBytes()) stage.name = names_.Intern(walk->bytes);
        break;
      case 20:
        if (walk->IsBytes()) {
          stage.name = names_.Intern(walk->bytes);
        } else if (const StringId* text = sequence.names.Find(walk->value)) {
          stage.name = *text;
        }
        break;
      case 21:
        stage.configured = true;
        for (Walker inner(walk.field()); inner.Next();) {
          if (inner->number == 1) stage.grid = triple(inner.field());
          if (inner->number == 2) stage.block = triple(inner.field());
        }
        break;
      default:
        break;
    }
  }
  if (duration > static_cast<uint64_t>(trace::kMaxDurationNs) ||
      time_ns + static_cast<int64_t>(duration) > trace::kMaxTimeNs) {
    Lost("duration_out_of_range",
         "The duration of an event is no number, or longer than 7 days.",
         offset);
    return;
  }
  stage.dur_ns = static_cast<int64_t>(duration);
  if (!stage.name.valid())
    stage.name = stage_name.valid() ? stage_name : names_.Intern("GPU stage");
  // "stream 7"
  const std::string_view text = names_.Text(queue_name);
  const size_t space = text.rfind(' ');
  stage.args.stream =
      ParseInt(space == std::string_view::npos ? text : text.substr(space + 1))
          .value_or(static_cast<int64_t>(Small(queue)));
  std::string tid = "GPU stages ";
  AppendInt(tid, stage.args.stream);
  std::string pid = "GPU ";
  AppendInt(pid, stage.args.device);
  stage.track = names_.InternTrack(names_.Intern(pid), names_.Intern(tid));
  stages_.push_back(stage);
  Next();
}

void EventReader::Finish() {
  if (tracks_.undescribed() > 0) {
    segment_.diagnostics.Add(
        Effect::kInfo, "track_without_descriptor",
        "Tracks with events that nothing describes, or only later.",
        trace::Diagnostics::kNoOffset, tracks_.undescribed());
  }
  // Viewers are given kernels twice: as slices and as stages.
  if (kernels_ && !stages_.empty()) {
    segment_.diagnostics.Add(
        Effect::kInfo, "gpu_stages_not_read",
        "GPU stages repeat the kernels that stand as slices; they are in no "
        "number.",
        stages_[0].offset, stages_.size());
    stages_.clear();
  }
  AddStages();
  AddFlows();
  segment_.Seal();
  builder_.Append(segment_);
  segment_.Clear();
}

void EventReader::AddStages() {
  const uint8_t category = names_.InternCategory(names_.Intern("kernel"));
  for (Stage_& stage : stages_) {
    if (stage.configured) {
      trace::LaunchConfig config;
      config.grid = stage.grid;
      config.block = stage.block;
      stage.args.config = names_.InternConfig(config);
    }
    segment_.AddSlice(stage.start_ns, stage.dur_ns, stage.name, Kind::kKernel,
                      category, stage.track, stage.offset,
                      segment_.AddDevice(stage.args));
  }
}

void EventReader::AddFlows() {
  // Equal ids connect in the order of time.
  std::sort(flows_.begin(), flows_.end(),
            [](const FlowEnd& a, const FlowEnd& b) {
              return std::tuple(a.id, a.time_ns, a.uid) <
                     std::tuple(b.id, b.time_ns, b.uid);
            });
  for (size_t begin = 0; begin < flows_.size();) {
    size_t end = begin;
    while (end < flows_.size() && flows_[end].id == flows_[begin].id) ++end;
    if (end - begin > 1) AddFlow(begin, end);
    begin = end;
  }
}

// The events of one id, in order of time.
void EventReader::AddFlow(size_t begin, size_t end) {
  int64_t correlation = kNoInt;
  bool launch = false;
  for (size_t i = begin; i < end; ++i) {
    if (!trace::IsDevice(flows_[i].kind)) continue;
    launch = true;
    if (flows_[i].correlation != kNoInt) correlation = flows_[i].correlation;
  }
  trace::Flows& out = segment_.flows;
  for (size_t i = begin; i < end; ++i) {
    const FlowEnd& flow = flows_[i];
    out.time_ns.push_back(flow.time_ns);
    out.id.push_back(correlation != kNoInt
                         ? correlation
                         : static_cast<int64_t>(flow.id & INT64_MAX));
    out.track.push_back(flow.track);
    out.phase.push_back(i == begin               ? FlowPhase::kStart
                        : launch || i + 1 == end ? FlowPhase::kFinish
                                                 : FlowPhase::kStep);
    out.kind.push_back(launch                   ? FlowKind::kLaunch
                       : flow.kind == Kind::kOp ? FlowKind::kForwardBackward
                                                : FlowKind::kOther);
    // Numbers are those of the whole file, the segment counts its own.
    out.uid.push_back(flow.uid - static_cast<uint32_t>(events_));
  }
}

}  // namespace lamina::ingest::pftrace
