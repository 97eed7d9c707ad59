// SPDX-License-Identifier: Apache-2.0
//
// The tables of `lamina path`.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/host/idle.h"
#include "analysis/host/work_facts.h"
#include "analysis/path/chain.h"
#include "analysis/path/what_if.h"
#include "lamina/result.h"

namespace lamina::analysis::path {

// What is explained.
struct Window {
  std::string name;  // empty: the whole recording
  int64_t start_ns = 0;
  uint32_t sink = kNoNode;
};

// The whole recording; the last range whose name contains `text`, up to the
// last work launched in it; or "A..B", seconds, milliseconds or microseconds
// from the first event ("1.5ms..2ms"). Errors: nothing of that name.
Result<Window> FindWindow(const Graph& graph, const std::string& text);

// Where the chain of the window is cut: the begin of a layer.
struct Cut {
  int64_t start_ns = 0;
  std::string name;
};

struct TableOptions {
  bool segments = true;  // path_segments and path_edges
  // For the column of path_segments; null: it stays empty.
  const host::WorkLayers* layers = nullptr;
  // By start; each part ends where the next begins, the last at `cut_end_ns`.
  // With what lies before and behind them they add up to the window.
  std::vector<Cut> cuts;
  int64_t cut_end_ns = 0;
  // For columns of verdicts; asked once, by any thread. Empty: they stay empty.
  std::function<host::IdleEvidence(std::span<const Interval> windows)> evidence;
};

std::vector<Schema> Schemas();

// path_summary, path_owners, verdicts, path_segments, path_edges and what they
// say. `sums` are those of the window's chain: found here, used below.
ResultSet PathTables(const Graph& graph, const Window& window, PathSums& sums,
                     const TableOptions& options);

// what_if: one row per text. Errors: those of ParseScenario.
Result<Table> WhatIfTable(const Graph& graph, const Window& window,
                          const PathSums& sums,
                          const std::vector<std::string>& specs);

// The path of a step, a position in Steps: from its begin to the later of its
// end and that of the last work that it launched. Steps without one are left
// out.
struct StepPath {
  uint32_t step = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  PathSums sums;
};
std::vector<StepPath> StepPaths(const Graph& graph);

// Parts of these, for one recording or several: path_summary, path_graph, and
// rows of what_if.
Table SummaryTable(const Graph& graph, const Window& window,
                   const PathSums& sums);
Table GraphTable(const Graph& graph);

// Rows of what_if for one graph. What the graph leaves open is the same for all
// and found once, when a first answer is a range.
class WhatIfRows {
 public:
  WhatIfRows(const Graph& graph, const Window& window, const PathSums& sums);
  void Add(const std::string& spec, const Scenario& scenario);
  Table Take() { return std::move(table_); }

 private:
  struct Doubt {
    int64_t ns = -1;  // what hangs on it
    std::string reason;
  };
  static Doubt DoubtOf(const Graph& graph);
  std::string Reason(const Scenario& scenario);

  const Graph& graph_;
  const Window& window_;
  const PathSums& sums_;
  Table table_;
  std::optional<Doubt> doubt_;
};

// "9.3 ms", with the range where it is wider than 5 % of the window.
std::string SaidOf(const Saved& saved, int64_t window_ns);

// How much later each node may end without moving the sink; the largest int64
// for nodes that the sink does not depend on.
std::vector<int64_t> TotalSlack(const Graph& graph, uint32_t sink);

}  // namespace lamina::analysis::path
