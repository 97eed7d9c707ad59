// SPDX-License-Identifier: Apache-2.0
//
// The chain event by event: path_owners and path_edges of one recording,
// path_segments of one or several.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/node_hash_map.h>
#include <utility>
#include <vector>

#include "analysis/host/work_facts.h"
#include "analysis/path/joined.h"
#include "analysis/path/tables.h"

namespace lamina::analysis::path {

// What the chain runs through.
struct ChainOwner {
  int64_t time_ns = 0, count = 0;
  SliceId first;
};
using ChainOwners =
    absl::node_hash_map<std::pair<SegmentKind, StringId>, ChainOwner>;
std::pair<ChainOwners, PathSums> OwnersOfChain(const Graph& graph,
                                               const Window& window);

// Time of all device work by name, on the chain and off it, and the least
// slack of any; kNoSlack where the sink does not depend on it.
inline constexpr int64_t kNoSlack = INT64_MAX;
using WorkTotals = absl::flat_hash_map<StringId, std::pair<int64_t, int64_t>>;
WorkTotals TotalsOfWork(const Graph& graph, const Window& window);

std::vector<Schema> ChainSchemas();
Table OwnersTable(const Graph& graph, const Window& window,
                  const ChainOwners& owners, const WorkTotals& totals);
// `layers` may be null.
Table SegmentsTable(const Graph& graph, const std::vector<Segment>& segments,
                    const host::WorkLayers* layers);
// With the rank of each, times on the clock that all share.
Table JoinedSegmentsTable(const JoinedView& view,
                          const std::vector<Segment>& segments);
Table EdgesTable(const Graph& graph);

}  // namespace lamina::analysis::path
