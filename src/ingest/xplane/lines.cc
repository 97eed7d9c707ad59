// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/lines.h"

#include "ingest/xplane/details.h"

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
    facts.api = ApiKindOf(name.name);
    facts.role = RoleOf(name.name);
    stats.Clear();
    plane.AddStats(name.stats, stats, unpacked_);
    if (!stats.empty()) facts.stats = stats.List();
    names.push_back(std::move(facts));
  }
}

}  // namespace lamina::ingest::xplane
