// SPDX-License-Identifier: Apache-2.0
//
// The tracks of the output: which there are, how they are named and ordered.
// Tracks with device work stand below the process that launched it; where no
// call says which, below the host process of the same rank, or of the trace.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "emit/perfetto/packets.h"
#include "trace/trace.h"

namespace lamina::emit::perfetto {

// Every call that returns a lane describes its track first.
class Lanes {
 public:
  Lanes(const trace::Trace& trace, PacketWriter* packets)
      : trace_(trace), packets_(*packets) {}

  uint64_t uuid(uint32_t lane) const { return lanes_[lane].uuid; }

  // A track that is none of the trace's.
  uint32_t AddPlain(const Track& track);
  // Tracks with slices or instants: processes first, then their tracks.
  void AddTracks();
  // That of a track of the trace; none has been made of an empty one.
  uint32_t Of(trace::TrackId track) const { return of_track_[track.value]; }
  // A further track beside `lane`; `number` counts from 1.
  uint32_t AddOverlap(uint32_t lane, size_t number);
  // Of a series of a counter of a process; made on first use.
  uint32_t OfCounter(StringId pid, StringId name, StringId series);

 private:
  struct Lane {
    uint64_t uuid = 0;
    std::string name;
  };
  // What stands on a track of the trace.
  struct Content {
    uint64_t events = 0;
    uint64_t calls = 0;  // ops and API calls
    bool on_device = false;
    StringId launcher;  // process of most calls that launched work here
    const trace::DeviceArgs* device = nullptr;  // of the first device slice
  };

  void CountContents();
  void FindLaunchers();
  void FindMainProcesses();
  std::string_view RankOf(StringId pid) const;
  StringId ProcessOf(uint32_t track) const;
  std::tuple<bool, int64_t, int64_t, uint32_t> SortKey(uint32_t track) const;
  uint64_t Group(StringId pid);
  uint32_t AddTrack(uint32_t index, uint64_t group, int64_t rank);
  std::string DeviceName(uint32_t index) const;
  uint32_t Keep(uint64_t uuid, std::string name);
  std::string_view Text(StringId id) const { return trace_.Text(id); }

  const trace::Trace& trace_;
  PacketWriter& packets_;
  std::vector<Lane> lanes_;
  std::vector<Content> contents_;  // by track of the trace
  std::vector<uint32_t> of_track_;
  // By process of devices: which launches to them, and which else stands for
  // what launches.
  absl::flat_hash_map<StringId, StringId> launcher_of_pid_;
  absl::flat_hash_map<std::string_view, StringId> main_of_rank_;
  absl::flat_hash_map<StringId, const trace::Track*> first_of_pid_;
  absl::flat_hash_map<StringId, uint64_t> groups_;
  absl::flat_hash_map<std::tuple<StringId, StringId, StringId>, uint32_t>
      counters_;
};

// Which flows begin or end at a slice, by id. In this form slices of one id are
// a chain in the order of time, so a call that launched many kernels has an id
// for each: the arrows of a graph launch are a fan, not a chain.

class Arrows {
 public:
  explicit Arrows(const trace::Trace& trace);

  // The begin of one that the recording does not have: its id. The end of it.
  uint64_t Add(trace::SliceId from);
  void Add(trace::SliceId to, uint64_t id);

  // Valid until the next call.
  const std::vector<uint64_t>& Of(trace::SliceId slice);

 private:
  void AddLaunches();
  void AddOthers();

  const trace::Trace& trace_;
  // Of a call: the device slices that it launched.
  absl::flat_hash_map<uint32_t, std::vector<uint32_t>> launched_;
  std::vector<bool> is_launched_;  // by slice
  // Arrows that the recording has beside those of launches.
  absl::flat_hash_map<uint32_t, std::vector<uint64_t>> others_;
  uint64_t added_ = 0;
  std::vector<uint64_t> found_;
};

}  // namespace lamina::emit::perfetto
