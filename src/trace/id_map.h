// SPDX-License-Identifier: Apache-2.0
//
// From the ids of a worker to those of the trace.
//
// Ids of the trace are given in the order in which the joined events use them,
// so that they do not depend on which worker parsed what. An id is looked up
// by its text once for every worker and read from a vector after that.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <utility>

#include "trace/segment.h"
#include "trace/trace.h"

namespace lamina::trace {

// Tracks, launch configurations and categories of the trace by what they are.
class GlobalIds {
 public:
  explicit GlobalIds(Trace* trace) : trace_(*trace) {}

  StringId Text(std::string_view text) { return trace_.strings.Intern(text); }
  TrackId Track(StringId pid, StringId tid);
  uint32_t Config(const LaunchConfig& config);
  uint8_t Category(StringId text);
  // Index of the empty category, also for the 256th and later ones.
  uint8_t NoCategory();

 private:
  Trace& trace_;
  absl::flat_hash_map<std::pair<StringId, StringId>, uint32_t> tracks_;
  absl::flat_hash_map<LaunchConfig, uint32_t> configs_;
  absl::flat_hash_map<StringId, uint8_t> categories_;
};

// The ids of one worker as ids of the trace, made on first use.
class IdMap {
 public:
  // Takes over the names that are new in `segment`.
  IdMap(GlobalIds* ids, const Segment& segment);

  StringId Map(StringId local) {
    if (!local.valid()) return local;
    StringId& global = names_.text_ids[local.value];
    if (!global.valid()) global = ids_.Text(names_.texts[local.value]);
    return global;
  }
  template <class... Ids>
  void MapAll(Ids&... ids) {
    ((ids = Map(ids)), ...);
  }
  TrackId Map(TrackId local) {
    TrackId& global = names_.track_ids[local.value];
    if (!global.valid()) {
      const auto [pid, tid] = names_.tracks[local.value];
      const StringId process = Map(pid);
      global = ids_.Track(process, Map(tid));
    }
    return global;
  }
  uint32_t MapConfig(uint32_t local) {
    if (local == kNoRow) return local;
    uint32_t& global = names_.config_ids[local];
    if (global == kNoRow) global = ids_.Config(names_.configs[local]);
    return global;
  }
  uint8_t MapCategory(uint8_t local) {
    if (local >= names_.category_ids.size()) return ids_.NoCategory();
    int& global = names_.category_ids[local];
    if (global < 0) global = ids_.Category(Map(names_.categories[local]));
    return static_cast<uint8_t>(global);
  }

 private:
  GlobalIds& ids_;
  LocalNames::Joined& names_;
};

}  // namespace lamina::trace
