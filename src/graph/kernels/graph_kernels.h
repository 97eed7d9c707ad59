// SPDX-License-Identifier: Apache-2.0
//
// Times of the kernels of a replayed graph, on the nodes of a graph dump and by
// layer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/kernels/replays.h"
#include "graph/launch_rules/launch_rules.h"
#include "graph/layers/kinds.h"
#include "graph/layers/layer_graph.h"
#include "lamina/result.h"

namespace lamina::graph_kernels {

struct Options {
  std::optional<int64_t> graph_id;
  std::string phase;  // prefill, decode or empty
};

// Over the full replays. Medians may end in half a nanosecond.
struct Timing {
  double median_ns = 0;
  int64_t p95_ns = 0;  // nearest rank
  size_t count = 0;
};

struct MappedKernel {
  Slot slot;
  std::string name;  // short
  std::string_view full_name;
  graph::NodeId node;      // invalid: no node was found
  int layer = -1;          // position of a layer; -1: outside
  std::string layer_name;  // "5", "shared", "epilogue"
  graph::KernelFit fit = graph::KernelFit::kNone;  // none: no node
  Timing time;
  double start_ns = 0;  // from the first kernel of its layer, median
  int64_t ranks = 0;    // of a collective, as the trace says; 0: it does not
  int64_t bytes = 0;
};

struct NodeTime {
  graph::NodeId node;
  std::string layer_name;
  std::vector<size_t> kernels;
  Timing time;  // of the sum of its kernels in each replay
};

struct LayerTime {
  std::string name;
  std::vector<size_t> kernels;
  Timing time;
  size_t streams = 0;
  Timing wall{};  // first start to last end
};

struct KernelMap {
  GraphRuns runs;
  std::vector<MappedKernel> kernels;  // by slot
  std::vector<NodeTime> nodes;        // by first kernel
  std::vector<LayerTime> layers;      // by first kernel
  std::vector<Note> notes;
  Table candidates;
};

// What a dump says, found once.
struct DumpView {
  const graph::Graph& graph;
  const graph::Layers& layers;
  const graph::Kinds& kinds;
};

// The kernels of the graph of a trace that fits the dump best. Errors: no
// replayed graph in the trace, none that was asked for; both phases fit and
// none was asked for.
Result<KernelMap> MapKernels(const trace::Trace& trace, const DumpView& dump,
                             const graph::LaunchTable& launches,
                             const Options& options);
// Without a dump: layers are repeats in the order of kernels.
Result<KernelMap> ListKernels(const trace::Trace& trace,
                              const graph::LaunchTable& launches,
                              const Options& options);

// Share of the kernel time that is surely (exact, sure) on nodes of the dump;
// below kSureEnough the trace is of another model, phase or parallelism, or the
// dump is of another stage.
double SureShare(const KernelMap& map);
inline constexpr double kSureEnough = 0.8;
// "79 % of the kernel time of the trace is surely on nodes of this dump, 80 %
// are needed" of a share below kSureEnough: whole per cent, never rounded up.
std::string MisfitText(double sure_share);

// Puts kernels on the nodes of a layer that was cut from the same dump.
void AddKernels(const KernelMap& map, const graph::Graph& graph,
                graph::LayerGraph& layer);

// Tables `graphs`, `layer_times`, `node_times`, `graph_kernels`, with notes.
ResultSet KernelTables(KernelMap& map, const graph::Graph* graph);

// The file of kernels by layer.
std::string KernelJson(const KernelMap& map, const graph::Graph* graph,
                       const std::string& source, bool extended,
                       const std::string& only_layer);

}  // namespace lamina::graph_kernels
