// SPDX-License-Identifier: Apache-2.0
//
// All layers of the dumps of a run as tables, for a page that draws them.
//
// The layers of a model are alike and most transforms leave most layers as
// they were. So what a drawing needs is kept once per kind (ops, shapes,
// edges), names and times once per distinct layer, and a file only says which
// layers it has.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/draw/draw_layer.h"
#include "graph/launch_rules/launch_rules.h"
#include "graph/layers/layer_graph.h"
#include "graph/layers/rules.h"
#include "lamina/result.h"
#include "render/dot/dot.h"

namespace lamina::graph {

// A dump file, or what a page calls one.
struct AtlasFile {
  std::string name;
  std::string stage;
  std::string transform;
};

class Atlas {
 public:
  // Nodes with names that a page can hold; files that come later are left out
  // and counted.
  static constexpr size_t kMostNames = 400000;

  // Both must live as long.
  Atlas(const GroupRules& rules, const LaunchTable& launches,
        const DrawOptions& options = {});

  // Puts kernels on the nodes of a layer that was just cut.
  using Decorate = std::function<void(LayerGraph&)>;

  // All layers of a graph, and what stands in front of and behind them.
  void Add(const AtlasFile& file, const Graph& graph,
           const Decorate& decorate = {});

  // Tables `graph_files`, `graph_layers`, `graph_nodes`, `graph_edges`,
  // `graph_names` and `graph_node_kernels`, with a note if files were left out.
  ResultSet Tables() &&;

 private:
  void AddLayer(size_t file, const std::string& name, const LayerGraph& layer);
  size_t KindOf(const LayerGraph& layer, const render::DotGraph& scene);
  size_t CutOf(size_t kind, const LayerGraph& layer,
               const render::DotGraph& scene);

  const GroupRules& rules_;
  const LaunchTable& launches_;
  const DrawOptions options_;
  std::map<std::string, size_t> kinds_;  // by content
  std::map<std::string, size_t> cuts_;
  size_t files_ = 0;
  size_t names_ = 0;
  size_t left_out_ = 0;
  Table file_table_;
  Table layer_table_;
  Table node_table_;
  Table edge_table_;
  Table name_table_;
  Table kernel_table_;
};

}  // namespace lamina::graph
