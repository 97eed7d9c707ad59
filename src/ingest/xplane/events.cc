// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/events.h"

#include <cstring>

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

}  // namespace lamina::ingest::xplane
