// SPDX-License-Identifier: Apache-2.0
#include "engine/module_markers.h"

#include <string>

#include "trace/module_frames.h"

namespace lamina::engine {
namespace {

using rules::MarkerPhase;
using trace::ModuleMarker;

ModuleMarker::Extent ExtentOf(MarkerPhase phase) {
  switch (phase) {
    case MarkerPhase::kPreForward:
    case MarkerPhase::kPreBackward:
      return ModuleMarker::Extent::kBegin;
    case MarkerPhase::kPostForward:
    case MarkerPhase::kPostBackward:
      return ModuleMarker::Extent::kEnd;
    case MarkerPhase::kForward:
    case MarkerPhase::kBackward:
      break;
  }
  return ModuleMarker::Extent::kWhole;
}

bool IsBackward(MarkerPhase phase) {
  return phase == MarkerPhase::kBackward ||
         phase == MarkerPhase::kPreBackward ||
         phase == MarkerPhase::kPostBackward;
}

}  // namespace

void AddMarkedModules(trace::Trace& trace, const rules::MarkerTable& rules) {
  trace::ModuleMarkers markers;
  // Each distinct text is read once.
  std::vector<bool> known(trace.strings.size(), false);
  const trace::Slices& slices = trace.slices;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    const StringId name = slices.name[i];
    if (!trace::MayNameModule(slices.kind[i]) || known[name.value]) continue;
    known[name.value] = true;
    const auto marker = rules.Read(trace.strings[name]);
    if (!marker) continue;
    ModuleMarker& added = markers[name];
    added.extent = ExtentOf(marker->phase);
    added.backward = IsBackward(marker->phase);
    for (const std::string& part : marker->path) {
      added.path.push_back(
          trace.strings.Intern(std::string(trace::kModulePrefix) + part));
    }
  }
  trace::AddModuleFrames(trace, markers);
}

}  // namespace lamina::engine
