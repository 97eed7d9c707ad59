// SPDX-License-Identifier: Apache-2.0
#include "trace/track_facts.h"

#include <absl/container/flat_hash_map.h>
#include <optional>

namespace lamina::trace {
namespace {

// A text about a process. It stands on one of its tracks, in Kineto files on
// that with tid 0; elsewhere the last one holds.
struct ProcessText {
  StringId text;
  bool from_zero = false;

  void Offer(StringId offered, bool zero) {
    if (zero || !from_zero) text = offered;
    from_zero = from_zero || zero;
  }
};

// They hold for all tracks of the process.
struct ProcessFacts {
  ProcessText name, labels;
  std::optional<int64_t> sort;
};

}  // namespace

void ApplyFacts(std::span<const TrackFact> facts, Trace& trace) {
  absl::flat_hash_map<StringId, ProcessFacts> processes;
  for (const TrackFact& fact : facts) {
    Track& track = trace.tracks[fact.track.value];
    ProcessFacts& process = processes[track.pid];
    const bool zero = trace.strings[track.tid] == "0";
    switch (fact.what) {
      case TrackFact::What::kProcessName:
        process.name.Offer(fact.text, zero);
        break;
      case TrackFact::What::kProcessLabels:
        process.labels.Offer(fact.text, zero);
        break;
      case TrackFact::What::kProcessSort:
        process.sort = fact.number;
        break;
      case TrackFact::What::kThreadName:
        track.thread_name = fact.text;
        break;
      case TrackFact::What::kThreadSort:
        track.thread_sort = fact.number;
        break;
    }
  }
  for (Track& track : trace.tracks) {
    const auto it = processes.find(track.pid);
    if (it == processes.end()) continue;
    track.process_name = it->second.name.text;
    track.process_labels = it->second.labels.text;
    track.process_sort = it->second.sort;
  }
}

}  // namespace lamina::trace
