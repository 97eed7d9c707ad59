// SPDX-License-Identifier: Apache-2.0
//
// Where one thread drives several devices at the same time, every device gets a
// track of its own beside the thread's.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <set>

#include "base/decimal.h"
#include "ingest/xplane/runs.h"

namespace lamina::ingest::xplane {

using trace::TrackId;

namespace {

// Tracks on which runs of several devices overlap.
absl::flat_hash_set<TrackId> MixedTracks(const Waiting<Run>& runs) {
  absl::flat_hash_set<TrackId> mixed;
  const Run* furthest = nullptr;  // of its track
  for (size_t i = runs.size(); i-- > 0;) {
    const Run& run = runs[i];
    if (furthest != nullptr && furthest->track != run.track) furthest = nullptr;
    if (furthest != nullptr && furthest->device != run.device &&
        run.start_ns < furthest->end_ns)
      mixed.insert(run.track);
    if (furthest == nullptr || run.end_ns > furthest->end_ns) furthest = &run;
  }
  return mixed;
}

TrackId DeviceTrack(const std::pair<uint32_t, TrackId>& lane,
                    const Pending& pending, Rows& rows) {
  std::string tid = "calls ";
  AppendInt(tid, static_cast<int64_t>(lane.second.value));
  tid += " of GPU ";
  AppendInt(tid, pending.devices[lane.first]);
  const TrackId track = rows.Track("/host:CPU", tid);
  rows.Name(track, trace::TrackFact::What::kThreadName, tid);
  return track;
}

}  // namespace

void SeparateDevices(Waiting<Run>& runs, Pending& pending, Rows& rows) {
  const absl::flat_hash_set<TrackId> mixed = MixedTracks(runs);
  if (mixed.empty()) return;
  std::set<std::pair<uint32_t, TrackId>> lanes;
  for (const Run& run : runs) {
    if (mixed.contains(run.track)) lanes.emplace(run.device, run.track);
  }
  absl::flat_hash_map<std::pair<uint32_t, TrackId>, TrackId> tracks;
  for (const auto& lane : lanes)
    tracks[lane] = DeviceTrack(lane, pending, rows);
  const auto move = [&](uint32_t device, TrackId& track) {
    const auto it = tracks.find(std::pair(device, track));
    if (it != tracks.end()) track = it->second;
  };
  for (Run& run : runs) move(run.device, run.track);
  for (Call& call : pending.calls) move(call.device, call.track);
  SortRuns(runs);
}

}  // namespace lamina::ingest::xplane
