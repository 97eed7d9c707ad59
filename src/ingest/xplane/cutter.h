// SPDX-License-Identifier: Apache-2.0
//
// The events of a file in stretches of one line, for threads to parse; what the
// events of a line share is ready before the first of them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/chunk.h"
#include "base/protobuf/wire.h"
#include "ingest/xplane/pending.h"
#include "ingest/xplane/programs.h"
#include "ingest/xplane/xspace.h"
#include "trace/builder.h"

namespace lamina::ingest::xplane {

// What the events of a line share, ready before the first of them is parsed and
// constant from then on: threads parse events of one line at the same time.

// What threads have in common. Whoever uses the members holds the mutex.
struct Shared {
  explicit Shared(trace::LocalNames* local_names)
      : names(*local_names), programs(local_names) {}

  std::mutex mutex;
  trace::LocalNames& names;
  Programs programs;
};

// What the name of an event says, for all events of that name.
struct NameFacts {
  enum class Role : uint8_t {
    kRange,
    kPython,
    kAllocation,
    kDeallocation,
    kThunks,  // an execution of a program
    kModule,  // the same, as other builds show it
  };
  StringId id;  // of Shared::names
  trace::Kind device = trace::Kind::kKernel;
  trace::Kind api = trace::Kind::kRuntime;
  Role role = Role::kRange;
  // A long list must not cost its length at every short event.
  std::vector<std::pair<StatKey, Stat>> stats;
};

struct EventPlane {
  EventPlane(Plane tables, Shared& shared);

  Plane plane;
  PlaneKind kind;
  std::vector<NameFacts> names;  // by place in Plane::event_names

 private:
  std::deque<std::string> unpacked_;  // texts of stats
};

struct Line {
  enum class Tpu : uint8_t { kOps, kSteps, kModules, kSkipped };

  std::shared_ptr<const EventPlane> plane;
  int64_t id = 0;
  std::string name, display_name;
  int64_t origin_ns = 0;
  int64_t device = 0;
  uint32_t device_row = 0;  // of Pending::devices
  std::string pid, tid, thread_name;
  trace::TrackId track;  // of Shared::names
  Tpu tpu = Tpu::kSkipped;
  uint32_t tpu_line = 0;  // row of Pending::tpu_lines
};

// An event in the text of a chunk: this, and behind it so many bytes.
struct EventHead {
  uint64_t offset;  // in the unpacked input
  uint64_t size;
};

class EventCutter {
 public:
  // The names of a plane stand behind its events: `ahead`, the same bytes as
  // `source`, runs a plane ahead and fetches them, so that only the planes
  // whose events are being parsed are in memory.
  EventCutter(ByteSource& ahead, ByteSource& source, Shared* shared,
              Pending* pending, int64_t profile_start_ns);

  // Some events of one line; false when there are none left.
  Result<bool> Next(Chunk& chunk);
  // Of the last stretch: its line, and whether it is the first of it.
  std::shared_ptr<const Line> line() const { return line_; }
  bool first() const { return first_; }

  // Damage ends a line, or a plane when no length says where the line ends.
  const trace::Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  bool EnterPlane();
  bool LeavePlane();
  bool EnterLine();
  void LeaveLine();
  void TakeEvents(Chunk& chunk);
  void TakeEvent(Chunk& chunk);
  void TakeTime();
  void Begin();
  void BeginTpu();
  void Lost(std::string_view reason, std::string_view text, uint64_t offset) {
    diagnostics_.Add(trace::Effect::kLost, reason, text, offset);
  }

  trace::Diagnostics counted_;  // by the first pass
  PlaneReader planes_;
  protobuf::Stream stream_;
  Shared& shared_;
  Pending& pending_;
  const int64_t profile_start_ns_;
  trace::Diagnostics diagnostics_;
  std::shared_ptr<const EventPlane> plane_;  // null: in none
  std::shared_ptr<Line> line_;
  bool in_line_ = false;
  bool begun_ = false;  // an event of the line was seen
  int64_t time_ = 0;    // of the line, as it stands
  bool first_ = false;
  bool ended_ = false;
  uint64_t stretches_ = 0;
};

}  // namespace lamina::ingest::xplane
