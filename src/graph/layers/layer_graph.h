// SPDX-License-Identifier: Apache-2.0
//
// One layer as a graph of its own, ready to be written or drawn: its nodes with
// what they consume from inside and outside, no references to the dump.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/layers/groups.h"
#include "graph/layers/kinds.h"
#include "graph/layers/layers.h"
#include "graph/layers/rules.h"
#include "lamina/result.h"

namespace lamina::graph {

// How sure it is that a node launched a kernel. ambiguous: another node fits
// nearly as well; likely: the best place in the order; sure: a rule names the
// kernel and all layers of the kind agree; exact: both names say so.
enum class KernelFit : uint8_t { kNone, kAmbiguous, kLikely, kSure, kExact };
std::string_view FitName(KernelFit fit);

struct LayerKernel {
  std::string name;  // short
  std::string full_name;
  double duration_ns = 0;  // median over replays, may end in a half
  std::optional<int64_t> p95_ns;
  KernelFit fit = KernelFit::kNone;
  double start_ns = 0;  // from the first kernel of the layer, median
  uint32_t stream = 0;  // 0: the one with most time, then by time
  int64_t ranks = 0;    // of a collective; 0: not known
  int64_t bytes = 0;    // of its message; 0: not known
};

struct LayerWeight {
  std::string name;
  std::string shape;
  std::string dtype;
};

// Ops of hidden nodes that an edge goes over, from its begin on.
struct HiddenOps {
  static constexpr size_t kMost = 8;
  std::vector<std::string> ops;  // at most that many
  size_t more = 0;               // behind them
  size_t Count() const { return ops.size() + more; }
};

struct LayerNode {
  std::string id;
  std::string target;  // as in the dump
  std::string op;      // normalised
  std::string shape;
  std::string dtype;
  std::string group;
  std::string sub_group;
  std::vector<std::string> inputs;  // nodes or external inputs, each once
  // Of inputs that hidden nodes stand in front of: the shortest way over those.
  std::map<std::string, HiddenOps> over;
  std::vector<LayerWeight> weights;
  std::vector<LayerKernel> kernels;
  int64_t ranks = 0;      // of a collective, as an operand says; 0: not known
  bool boundary = false;  // of the next layer, shown because of its addition
};

struct ExternalInput {
  std::string id;
  std::string label;
  std::string shape;
};

struct TraceSummary {
  double total_ns = 0;  // sum of the kernels
  double wall_ns = 0;   // first start to last end, median; 0: unknown
  size_t replays = 0;   // of which times are medians
  // The trace fits the dump badly: kernels may stand on wrong nodes. Told in
  // the file and in the drawing; empty: it fits.
  std::string warning;
  // Whether kernels are said to be of their nodes: else the file has none, and
  // they are drawn hollow.
  bool claimed = true;
  size_t kernels = 0;
  size_t streams = 0;
};

struct LayerGraph {
  uint32_t index = 0;
  std::string stack;        // empty for the main one
  std::string part;         // "shared", "epilogue": no layer, `index` is 0
  std::string source_file;  // name without folder
  std::string section;      // name of the graph
  size_t of = 0;            // layers of its stack
  std::string kind;         // as KindName() says; empty: not known
  std::string kind_layers;  // of that kind: "3-60"
  std::vector<LayerNode> nodes;
  std::vector<ExternalInput> externals;  // in order of first use
  std::vector<LayerKernel> off_nodes;    // of the layer, on none of its nodes
  std::optional<TraceSummary> trace;
  std::vector<int64_t> stream_ids;  // of the trace, by LayerKernel::stream
};

// One layer, or what stands in front of or behind all (kShared, kEpilogue).
// `extended` adds the norm of the next layer that holds the addition of this
// one.
LayerGraph CutLayer(const Graph& graph, const Layers& layers, Place place,
                    const std::vector<Group>& groups, const GroupRules& rules,
                    bool extended);

// Says of which kind a layer is; parts are of none.
void NameKind(LayerGraph& layer, const Layers& layers, const Kinds& kinds,
              Place place);

// The file: JSON of one space per level, keys in a fixed order.
std::string LayerJson(const LayerGraph& layer, bool extended);

// The same as tables `graph_layer_nodes`, `graph_layer_inputs` and
// `graph_layer_weights`, with a note for each layer.
ResultSet LayerGraphTables(const std::vector<LayerGraph>& layers);

}  // namespace lamina::graph
