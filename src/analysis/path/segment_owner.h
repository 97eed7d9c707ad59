// SPDX-License-Identifier: Apache-2.0
//
// What the segments of a chain belong to: event, op, module, layer, step and
// where it ran, for the tables of a recording.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/host/work_facts.h"
#include "analysis/path/chain.h"

namespace lamina::analysis::path {

// Texts live as long as the SegmentOwners they came from.
struct OwnerFacts {
  std::optional<int64_t> uid;
  std::optional<std::string_view> name, op, module, layer;
  std::optional<int64_t> step;
  std::optional<std::string_view> thread;  // of time on the host
  std::optional<int64_t> device, stream;   // of time on a device
  std::string_view track;                  // thread, or device and stream
};

// A segment of a joined graph as one of the graph of its rank, in times of that
// recording: those of a node, and the time between two by the node at its end.
Segment OwnSegment(const Graph& joined, uint32_t part, const Graph& own,
                   Segment s);

class SegmentOwners {
 public:
  // Of a graph of one recording. `layers` may be null.
  SegmentOwners(const Graph& graph, const host::WorkLayers* layers);

  OwnerFacts Of(const Segment& s) const;
  // The op that launched device work, or around an event of the host.
  std::optional<std::string_view> Op(SliceId owner) const;
  std::optional<std::string_view> Module(SliceId owner) const;

 private:
  // Invalid: in no host tree.
  NodeId NodeOf(SliceId owner) const;

  const Graph& graph_;
  const HostModel& model_;
  const Trace& trace_;
  const host::WorkLayers* layers_;
  std::vector<std::string> modules_;  // by path
  std::vector<std::string> tracks_;   // by stream
};

}  // namespace lamina::analysis::path
