// SPDX-License-Identifier: Apache-2.0
//
// What the events of a line share, ready before the first of them is parsed and
// constant from then on: threads parse events of one line at the same time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ingest/xplane/plane_kind.h"
#include "ingest/xplane/programs.h"
#include "ingest/xplane/xspace.h"
#include "trace/builder.h"

namespace lamina::ingest::xplane {

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

}  // namespace lamina::ingest::xplane
