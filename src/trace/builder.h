// SPDX-License-Identifier: Apache-2.0
//
// The only way a reader writes a trace.
//
// Readers work in parallel: each worker fills Segments, one per chunk of
// input, with ids that are its own (segment.h), and TraceBuilder joins the
// segments in input order. Global ids are given in the order in which the
// joined events use them (id_map.h), so that the result does not depend on who
// parsed what when.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/id_map.h"
#include "trace/segment.h"
#include "trace/trace.h"

namespace lamina::trace {

class TraceBuilder {
 public:
  TraceBuilder() = default;
  TraceBuilder(const TraceBuilder&) = delete;
  TraceBuilder& operator=(const TraceBuilder&) = delete;

  // Joins sealed segments; call in input order, one at a time.
  void Append(const Segment& segment);
  // In place of Append() for a segment that is not wanted: later ones of its
  // worker may use names that are new in it.
  void Skip(const Segment& segment) { IdMap(&ids_, segment); }

  Info& info() { return trace_.info; }
  Diagnostics& diagnostics() { return trace_.diagnostics; }

  // Pairs begin and end events, drops what cannot be used, applies names to
  // tracks, mends times that cannot be true (repair_times.h) and sorts device
  // work into streams. The builder is spent. `adjust` is called when slices are
  // whole and tracks named, before anything is concluded from them: there a
  // format says what an event is by its track.
  Trace Finish(int threads, void (*adjust)(Trace&) = nullptr);

 private:
  Trace trace_;
  GlobalIds ids_{&trace_};
  uint64_t events_ = 0;
  PodVector<HalfSlice> halves_;
  std::vector<TrackFact> facts_;
};

}  // namespace lamina::trace
