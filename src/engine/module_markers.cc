// SPDX-License-Identifier: Apache-2.0
#include "engine/module_markers.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

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

constexpr int kUnread = -1;

}  // namespace

void AddEngineOps(trace::Trace& trace, const rules::Catalog& catalog) {
  const rules::PatternTable& rules = catalog.step_table();
  const trace::Slices& slices = trace.slices;
  std::vector<int> known(trace.strings.size(), kUnread);
  const auto is_run = [&](uint32_t i) {
    int& run = known[slices.name[i].value];
    if (run == kUnread) {
      const int rule = rules.Find(trace.strings[slices.name[i]]);
      run = rule != rules::PatternTable::kNone &&
            rules.rule(rule).value == "engine";
    }
    return run == 1;
  };
  std::map<uint32_t, std::vector<SliceId>> ranges;  // by track
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (slices.kind[i] == trace::Kind::kAnnotation && is_run(i))
      ranges.try_emplace(slices.track[i].value);
  }
  if (ranges.empty()) return;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (slices.kind[i] != trace::Kind::kAnnotation) continue;
    const auto of = ranges.find(slices.track[i].value);
    if (of != ranges.end()) of->second.emplace_back(i);
  }
  for (auto& [track, list] : ranges) {
    std::sort(list.begin(), list.end(), [&](SliceId a, SliceId b) {
      if (trace.Start(a) != trace.Start(b))
        return trace.Start(a) < trace.Start(b);
      if (trace.End(a) != trace.End(b)) return trace.End(a) > trace.End(b);
      return a < b;
    });
    std::vector<SliceId> open;  // from the outermost
    for (const SliceId s : list) {
      while (!open.empty() && trace.End(open.back()) <= trace.Start(s))
        open.pop_back();
      if (!open.empty() && is_run(open.back().value) && !is_run(s.value))
        trace.slices.kind[s.value] = trace::Kind::kOp;
      open.push_back(s);
    }
  }
}

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
