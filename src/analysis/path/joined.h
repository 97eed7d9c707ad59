// SPDX-License-Identifier: Apache-2.0
//
// The chain of last arrivals through several ranks (Graph::Join): it runs along
// the rank that comes last to a collective, and before it along whoever was
// last to the one before. What makes a rank late is what its own chain holds
// more of, since the collective before, than those of the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/path/tables.h"

namespace lamina::analysis::path {

struct JoinedRank {
  int64_t rank = 0;
  std::string file;
  const Graph* graph = nullptr;  // its own
  // For the column of path_segments; null: it stays empty.
  const host::WorkLayers* layers = nullptr;
};

// Times of the joined graph count from `first_ns`, its first event.
struct JoinedView {
  const Graph& graph;
  const std::vector<JoinedRank>& ranks;  // by part
  int64_t first_ns = 0;
};

// A scenario of one recording as one of the joined graph.
Scenario Lift(const Graph& joined, uint32_t part, const Graph& own,
              const Scenario& scenario);

// From the earliest start of the window on any rank to its last end. Errors:
// those of FindWindow, if it fails on all ranks. "A..B" counts from the first
// event of all ranks.
Result<Window> FindJoinedWindow(const JoinedView& view,
                                const std::string& text);

// path_ranks, path_collectives, path_summary, path_owners, path_segments and
// what they say.
ResultSet JoinedTables(const JoinedView& view, const Window& window,
                       const std::vector<Segment>& segments,
                       const TableOptions& options);

// what_if over all ranks: each text holds for every rank on which it matches.
// Errors: those of ParseScenario, if it fails on all ranks.
Result<Table> JoinedWhatIfTable(const JoinedView& view, const Window& window,
                                const std::vector<Segment>& segments,
                                const std::vector<std::string>& specs);

}  // namespace lamina::analysis::path
