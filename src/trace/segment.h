// SPDX-License-Identifier: Apache-2.0
//
// What one worker of a reader fills: the events of a piece of the input, with
// ids that are the worker's own. TraceBuilder (builder.h) joins segments and
// gives the ids of the trace.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace lamina::trace {

// The names of one worker. Kept across its segments.
class LocalNames {
 public:
  // Categories are numbered in a byte; this stands for all further ones.
  static constexpr uint8_t kNoCategory = 255;

  StringId Intern(std::string_view text);
  std::string_view Text(StringId id) const { return strings_[id]; }
  // Track of (pid, tid), both as text.
  TrackId InternTrack(StringId pid, StringId tid);
  uint32_t InternConfig(const LaunchConfig& config);
  uint8_t InternCategory(StringId text);
  uint8_t InternCategory(std::string_view text);

 private:
  friend class Segment;
  friend class IdMap;

  StringPool strings_;
  std::vector<std::pair<StringId, StringId>> tracks_;
  absl::flat_hash_map<std::pair<StringId, StringId>, uint32_t> track_ids_;
  std::vector<LaunchConfig> configs_;
  absl::flat_hash_map<LaunchConfig, uint32_t> config_ids_;
  std::vector<StringId> categories_;
  // What earlier segments have handed to the builder.
  size_t sent_strings_ = 0;
  size_t sent_tracks_ = 0;
  size_t sent_configs_ = 0;
  size_t sent_categories_ = 0;
  // The builder's side: what sealed segments handed over, and the ids in the
  // trace that it got. The worker never looks at it, so a segment can be
  // joined while its worker fills the next one.
  struct Joined {
    std::vector<std::string_view> texts;
    std::vector<StringId> text_ids;
    std::vector<std::pair<StringId, StringId>> tracks;
    std::vector<TrackId> track_ids;
    std::vector<LaunchConfig> configs;
    std::vector<uint32_t> config_ids;
    std::vector<StringId> categories;
    std::vector<int> category_ids;
  };
  Joined joined_;
};

// A begin or end event ("B", "E") waiting for its partner.
struct HalfSlice {
  int64_t time_ns = 0;
  uint64_t offset = 0;
  StringId name;
  TrackId track;
  uint32_t uid = 0;
  uint32_t detail = kNoRow;
  Kind kind = Kind::kOther;
  uint8_t category = 0;
  bool begin = false;
};

// A metadata event about a process or thread.
struct TrackFact {
  enum class What : uint8_t {
    kProcessName,
    kProcessLabels,
    kProcessSort,
    kThreadName,
    kThreadSort,
  };
  TrackId track;
  What what = What::kProcessName;
  StringId text;
  int64_t number = 0;
};

// Events of one piece of the input, in input order. Fill the columns through
// the members; ids are those of the LocalNames given. Argument rows count
// from 0 within the segment.
class Segment {
 public:
  explicit Segment(LocalNames* local_names) : names(local_names) {}
  Segment(Segment&&) noexcept = default;
  Segment& operator=(Segment&&) noexcept = default;

  void AddSlice(int64_t start_ns, int64_t dur_ns, StringId name, Kind kind,
                uint8_t category, TrackId track, uint64_t offset,
                uint32_t detail = kNoRow) {
    slices.push_back({.start_ns = start_ns,
                      .dur_ns = dur_ns,
                      .name = name,
                      .kind = kind,
                      .category = category,
                      .track = track,
                      .uid = next_uid,
                      .offset = offset,
                      .detail = detail});
  }
  uint32_t AddOp(const OpArgs& args) { return Row(ops, args); }
  uint32_t AddApi(const ApiArgs& args) { return Row(api_calls, args); }
  uint32_t AddDevice(const DeviceArgs& args) { return Row(device, args); }
  uint32_t AddPython(const PythonArgs& args) { return Row(python, args); }
  uint32_t AddCollective(const CollectiveArgs& args) {
    return Row(collectives, args);
  }
  uint32_t AddMemory(const MemoryArgs& args) { return Row(memory, args); }

  // Makes the segment ready to be joined: call once, on the worker, when it
  // is filled.
  void Seal();
  // Empties the columns, keeping their memory.
  void Clear();

  LocalNames* names;
  // Number of the current event within the segment; a reader increments it
  // for every record, also for those that it drops.
  uint32_t next_uid = 0;
  Slices slices;
  PodVector<OpArgs> ops;
  PodVector<ApiArgs> api_calls;
  PodVector<DeviceArgs> device;
  PodVector<PythonArgs> python;
  PodVector<CollectiveArgs> collectives;
  PodVector<MemoryArgs> memory;
  PodVector<GraphNode> graph_nodes;
  // Unlike the other rows they count over all segments: ops of any segment
  // name them. A reader that has some fills them in one segment.
  std::vector<Instruction> instructions;
  Flows flows;
  Instants instants;
  Counters counters;
  PodVector<EventCounter> event_counters;
  std::vector<HalfSlice> halves;
  std::vector<TrackFact> facts;
  Diagnostics diagnostics;

 private:
  friend class IdMap;
  template <class T>
  static uint32_t Row(PodVector<T>& table, const T& row) {
    table.push_back(row);
    return static_cast<uint32_t>(table.size() - 1);
  }

  // Names that are new since the last segment of the same worker.
  std::vector<std::string_view> new_texts_;
  std::vector<std::pair<StringId, StringId>> new_tracks_;
  std::vector<LaunchConfig> new_configs_;
  std::vector<StringId> new_categories_;
};

}  // namespace lamina::trace
