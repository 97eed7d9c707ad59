// SPDX-License-Identifier: Apache-2.0

#include "ingest/xplane/cutter.h"

#include "base/decimal.h"
#include "base/text.h"
#include "ingest/xplane/programs.h"
#include "ingest/xplane/xspace.h"
#include "trace/categories.h"

namespace lamina::ingest::xplane {

namespace {

NameFacts::Role RoleOf(std::string_view name) {
  using Role = NameFacts::Role;
  if (name.starts_with('$')) return Role::kPython;
  if (name == "MemoryAllocation") return Role::kAllocation;
  if (name == "MemoryDeallocation") return Role::kDeallocation;
  if (name == "GpuExecutable::ExecuteThunks") return Role::kThunks;
  if (name.ends_with(":XLA GPU module")) return Role::kModule;
  return Role::kRange;
}

}  // namespace

EventPlane::EventPlane(Plane tables, Shared& shared)
    : plane(std::move(tables)), kind(PlaneKindOf(plane.name)) {
  const std::lock_guard lock(shared.mutex);
  names.reserve(plane.event_names.size());
  Stats stats;
  for (size_t i = 0; i < plane.event_names.size(); ++i) {
    const EventName& name = plane.event_names.at(i);
    NameFacts facts;
    facts.id = shared.names.Intern(name.name);
    facts.device = DeviceKindOf(name.name);
    facts.api = trace::ApiKindOf(name.name);
    facts.role = RoleOf(name.name);
    stats.Clear();
    plane.AddStats(name.stats, stats, unpacked_);
    if (!stats.empty()) facts.stats = stats.List();
    names.push_back(std::move(facts));
  }
}

using protobuf::Field;
using trace::Effect;

namespace {

constexpr size_t kMaxEvent = size_t{64} << 20;
// Bytes of a stretch: some thousand events.
constexpr size_t kStretch = size_t{1} << 18;

// What the events of a plane refer to.
Tables WantedByEvents(std::string_view plane) {
  const PlaneKind kind = PlaneKindOf(plane);
  return kind == PlaneKind::kMetadata || kind == PlaneKind::kSkipped
             ? Tables::kNone
             : Tables::kAll;
}

std::string_view ProcessOf(const EventPlane& plane) {
  switch (plane.kind) {
    case PlaneKind::kHost:
      return "/host:CPU";
    case PlaneKind::kGpu:
      return "GPU";
    case PlaneKind::kTpu:
      return "TPU";
    default:
      return plane.plane.name;
  }
}

}  // namespace

EventCutter::EventCutter(ByteSource& ahead, ByteSource& source, Shared* shared,
                         Pending* pending, int64_t profile_start_ns)
    : planes_(ahead, &WantedByEvents, &counted_),
      stream_(source),
      shared_(*shared),
      pending_(*pending),
      profile_start_ns_(profile_start_ns) {}

Result<bool> EventCutter::Next(Chunk& chunk) {
  chunk.buffer.clear();
  while (chunk.buffer.empty()) {
    if (!in_line_ && !EnterLine()) {
      LAMINA_TRY(planes_.status());
      LAMINA_TRY(stream_.status());
      return false;
    }
    first_ = !begun_;
    TakeEvents(chunk);
  }
  chunk.text = {chunk.buffer.data(), chunk.buffer.size()};
  chunk.sequence = stretches_++;
  return true;
}

// Enters the next plane; false at the end of the file.
bool EventCutter::EnterPlane() {
  while (!ended_ && stream_.Next()) {
    if (stream_.field().number != 1 || !stream_.field().IsBytes()) continue;
    Plane tables;
    if (!planes_.Next(tables)) break;
    stream_.Enter();
    plane_ = std::make_shared<const EventPlane>(std::move(tables), shared_);
    if (plane_->kind == PlaneKind::kSkipped && plane_->plane.lines > 0) {
      diagnostics_.Add(
          Effect::kInfo, "plane_not_read",
          Contains(plane_->plane.name, "/stream:")
              ? "Planes of an old TensorFlow profiler are not read: record "
                "with a newer one."
              : "Planes that repeat or refine what other planes show (sparse "
                "cores, chips) are not read.",
          plane_->plane.offset);
    }
    return true;
  }
  ended_ = true;
  return false;
}

bool EventCutter::LeavePlane() {
  plane_ = nullptr;
  if (stream_.damage() && !stream_.Recover()) ended_ = true;
  if (!ended_) stream_.Leave();
  return !ended_;
}

// Enters the next line, of this plane or another.
bool EventCutter::EnterLine() {
  while (plane_ != nullptr || EnterPlane()) {
    const bool read = plane_->kind != PlaneKind::kMetadata &&
                      plane_->kind != PlaneKind::kSkipped;
    while (read && stream_.Next()) {
      if (stream_.field().number != 3 || !stream_.field().IsBytes()) continue;
      line_ = std::make_shared<Line>();
      line_->plane = plane_;
      if (plane_->kind != PlaneKind::kHost)
        line_->device = DeviceNumber(plane_->plane.name);
      line_->device_row = pending_.Device(line_->device);
      stream_.Enter();
      in_line_ = true;
      begun_ = false;
      time_ = 0;
      return true;
    }
    if (!LeavePlane()) return false;
  }
  return false;
}

void EventCutter::LeaveLine() {
  in_line_ = false;
  bool whole = true;
  if (stream_.damage()) {
    Lost("line_damaged",
         std::string("A line of events is not read to its end: ") +
             stream_.damage().what + ".",
         stream_.damage().offset);
    whole = stream_.Recover();
  }
  stream_.Leave();
  if (!whole) LeavePlane();
}

// Fills a stretch, or reads the line to its end.
void EventCutter::TakeEvents(Chunk& chunk) {
  while (stream_.Next()) {
    const Field& field = stream_.field();
    if (field.number == 4 && field.IsBytes()) {
      TakeEvent(chunk);
      if (chunk.buffer.size() >= kStretch) return;
    } else if (field.number == 3) {
      TakeTime();
    } else if (begun_) {
      // What else says something about a line stands before its events.
    } else if (field.number == 1) {
      line_->id = field.Int();
    } else if (field.number == 2 && stream_.Take(kMaxEvent)) {
      line_->name = stream_.bytes();
    } else if (field.number == 11 && stream_.Take(kMaxEvent)) {
      line_->display_name = stream_.bytes();
    }
  }
  LeaveLine();
}

void EventCutter::TakeEvent(Chunk& chunk) {
  if (!begun_) Begin();
  const uint64_t offset = stream_.field().offset;
  if (!stream_.Take(kMaxEvent)) {
    if (!stream_.damage())
      Lost("event_too_long", "An event is longer than 64 MiB.", offset);
    return;
  }
  const EventHead head{offset, stream_.bytes().size()};
  const char* const bytes = reinterpret_cast<const char*>(&head);
  chunk.buffer.insert(chunk.buffer.end(), bytes, bytes + sizeof(head));
  chunk.buffer.insert(chunk.buffer.end(), stream_.bytes().begin(),
                      stream_.bytes().end());
}

void EventCutter::TakeTime() {
  const Field& field = stream_.field();
  if (!begun_) {
    line_->origin_ns = time_ = field.Int();
  } else if (time_ != field.Int()) {
    Lost("line_time_behind_events",
         "The time of a line stands behind its events; their times are wrong "
         "by it.",
         field.offset);
  }
}

// The header of a line is read; its track gets its names.
void EventCutter::Begin() {
  begun_ = true;
  Line& line = *line_;
  // Values this large count from 1970, others from the start of profiling.
  constexpr int64_t kAbsolute = 1000000000000000000;
  if (line.origin_ns > kAbsolute && profile_start_ns_ > kAbsolute)
    line.origin_ns -= profile_start_ns_;
  line.pid = ProcessOf(*plane_);
  line.thread_name = line.display_name.empty() ? line.name : line.display_name;
  if (plane_->kind != PlaneKind::kHost) {
    // One process for all devices of a kind: the number tells them apart.
    AppendInt(line.tid, line.device);
    line.tid += '/';
    line.thread_name =
        line.pid + ' ' + std::to_string(line.device) + ' ' + line.thread_name;
  }
  AppendInt(line.tid, line.id);
  const std::lock_guard lock(shared_.mutex);
  trace::LocalNames& names = shared_.names;
  line.track =
      names.InternTrack(names.Intern(line.pid), names.Intern(line.tid));
  if (plane_->kind == PlaneKind::kTpu) BeginTpu();
}

void EventCutter::BeginTpu() {
  Line& line = *line_;
  line.tpu = line.name == "XLA Ops"       ? Line::Tpu::kOps
             : line.name == "Steps"       ? Line::Tpu::kSteps
             : line.name == "XLA Modules" ? Line::Tpu::kModules
                                          : Line::Tpu::kSkipped;
  if (line.tpu == Line::Tpu::kOps) {
    line.tpu_line = static_cast<uint32_t>(pending_.tpu_lines.size());
    pending_.tpu_lines.push_back(
        {line.track, line.device, line.device_row, line.id});
  }
  if (line.tpu == Line::Tpu::kSkipped) {
    diagnostics_.Add(Effect::kInfo, "derived_line",
                     "Lines that show the time of \"XLA Ops\" again under "
                     "other names, or time beside it, are not read.");
  }
}

}  // namespace lamina::ingest::xplane
