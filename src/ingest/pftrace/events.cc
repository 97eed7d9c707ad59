// SPDX-License-Identifier: Apache-2.0
#include "ingest/pftrace/events.h"

#include "ingest/pftrace/kinds.h"
#include "trace/categories.h"

namespace lamina::ingest::pftrace {

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

}  // namespace lamina::ingest::pftrace
