// SPDX-License-Identifier: Apache-2.0
//
// The replays of device graphs in a trace, each kernel at its place in its
// graph.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/layers/classic.h"
#include "trace/trace.h"

namespace lamina::graph_kernels {

// A kernel of a graph.
struct Slot {
  int64_t node_id = trace::kNoInt;  // kNoInt: the profiler gave none
  StringId name;
  int64_t stream = trace::kNoInt;
};

struct Replay {
  std::vector<trace::SliceId> slices;  // by slot; invalid: not in the trace
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  bool full = false;  // every slot exactly once
};

struct GraphRuns {
  int64_t graph_id = trace::kNoInt;
  int64_t device = trace::kNoInt;
  std::vector<Slot> slots;  // in the order of the graph
  // Node ids grow along every stream, so they are the order; else it is the
  // start in one replay.
  bool order_by_id = false;
  std::vector<Replay> replays;                   // by start
  std::optional<analysis::layers::Stage> phase;  // null: not known
  // Kernels of a step that no device graph launched; graph_id counts them.
  bool eager = false;

  size_t full_replays() const;
  size_t streams() const;
};

// All graphs of a trace, by graph id. Rows are told apart by their graph and
// launch; where the profiler gave none, by the node ids they share and by the
// repeat of an id. Kernels of graph launches without node ids (Kineto) are
// grouped by equal sequences of names.
std::vector<GraphRuns> FindGraphs(const trace::Trace& trace);

// What no device graph launched, by device and step: a range that a profiler or
// a server writes around one ("ProfilerStep#3", "... 1 ctx reqs, 0 gen reqs"),
// else what repeats in the order of kernels, else all. Steps with the same
// kernels on the same streams are replays of one.
// `wanted`: which kernels to look at; null: all.
std::vector<GraphRuns> FindEager(
    const trace::Trace& trace,
    const std::function<bool(trace::SliceId)>& wanted = nullptr);

}  // namespace lamina::graph_kernels
