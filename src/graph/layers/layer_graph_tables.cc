// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fmt/format.h>

#include "base/counted.h"
#include "base/decimal.h"
#include "graph/layers/layer_graph.h"
#include "table/row_columns.h"

namespace lamina::graph {
namespace {

std::string NameOf(const LayerGraph& layer) {
  if (!layer.part.empty()) return layer.part;
  return (layer.stack.empty() ? "" : layer.stack + ":") +
         std::to_string(layer.index);
}

Note NoteOf(const LayerGraph& layer, size_t edges, size_t weights) {
  std::string text = fmt::format(
      "{}{} of {}: {}, {}, {}, {} from outside.",
      layer.part.empty() ? "Layer " : "", NameOf(layer), layer.source_file,
      Counted(layer.nodes.size(), "node"), Counted(edges, "edge"),
      Counted(weights, "weight"), Counted(layer.externals.size(), "input"));
  if (layer.trace) {
    text += fmt::format(" {} on {} take {} in a replay of median length.",
                        Counted(layer.trace->kernels, "kernel"),
                        Counted(layer.trace->streams, "stream"),
                        HumanTime(std::llround(layer.trace->total_ns)));
  }
  return MakeNote(Severity::kInfo, "graph_layer", std::move(text),
                  {{"graph_layer_nodes", "layer", NameOf(layer), {}}});
}

struct NodeRow {
  std::string_view layer, id, op, shape, dtype, group, sub_group;
  std::string inputs;
  size_t weights;
  std::string kernels;
  std::string_view confidence;
  std::optional<int64_t> kernel_time;
};

struct InputRow {
  std::string_view layer, id, label, shape;
};

struct WeightRow {
  std::string_view layer, node, weight, shape, dtype;
};

}  // namespace

ResultSet LayerGraphTables(const std::vector<LayerGraph>& layers) {
  const RowColumns<NodeRow> node_columns{
      "graph_layer_nodes",
      "Ops of a layer, in the order of the dump.",
      {{"layer", ColumnType::kText, "Layer.", &NodeRow::layer},
       {"id", ColumnType::kText, "Node.", &NodeRow::id},
       {"op", ColumnType::kText, "Normalised op.", &NodeRow::op},
       {"shape", ColumnType::kText, "Shape of its result.", &NodeRow::shape},
       {"dtype", ColumnType::kText, "Type of its result.", &NodeRow::dtype},
       {"group", ColumnType::kText, "Part of the layer.", &NodeRow::group},
       {"sub_group", ColumnType::kText, "Part of that.", &NodeRow::sub_group},
       {"inputs", ColumnType::kText,
        "Nodes and inputs from outside that it consumes.", &NodeRow::inputs},
       {"weights", ColumnType::kInt, "Weights that it consumes.",
        &NodeRow::weights},
       {"kernels", ColumnType::kText, "Kernels on it, with a trace.",
        &NodeRow::kernels},
       {"confidence", ColumnType::kText, "How sure the first of them is.",
        &NodeRow::confidence},
       {"kernel_time_us", ColumnType::kTime,
        "Their medians over the replays; null: none is known.",
        &NodeRow::kernel_time}}};
  Table nodes(node_columns.schema());
  const RowColumns<InputRow> input_columns{
      "graph_layer_inputs",
      "What comes from outside of a layer.",
      {{"layer", ColumnType::kText, "Layer.", &InputRow::layer},
       {"id", ColumnType::kText, "Node outside.", &InputRow::id},
       {"label", ColumnType::kText, "What it is.", &InputRow::label},
       {"shape", ColumnType::kText, "Shape.", &InputRow::shape}}};
  Table inputs(input_columns.schema());
  const RowColumns<WeightRow> weight_columns{
      "graph_layer_weights",
      "Weights of a layer.",
      {{"layer", ColumnType::kText, "Layer.", &WeightRow::layer},
       {"node", ColumnType::kText, "Node that consumes it.", &WeightRow::node},
       {"weight", ColumnType::kText, "Name.", &WeightRow::weight},
       {"shape", ColumnType::kText, "Shape.", &WeightRow::shape},
       {"dtype", ColumnType::kText, "Type.", &WeightRow::dtype}}};
  Table weights(weight_columns.schema());
  ResultSet out;
  for (const LayerGraph& layer : layers) {
    const std::string name = NameOf(layer);
    size_t edges = 0;
    const size_t weights_before = weights.rows();
    for (const LayerNode& node : layer.nodes) {
      edges += node.inputs.size();
      double total_ns = 0;
      std::vector<std::string_view> kernels;
      for (const LayerKernel& kernel : node.kernels) {
        total_ns += kernel.duration_ns;
        kernels.emplace_back(kernel.name);
      }
      std::optional<int64_t> time;
      if (!kernels.empty()) time = std::llround(total_ns);
      node_columns.Add(
          nodes, {.layer = name,
                  .id = node.id,
                  .op = node.op,
                  .shape = node.shape,
                  .dtype = node.dtype,
                  .group = node.group,
                  .sub_group = node.sub_group,
                  .inputs = fmt::format("{}", fmt::join(node.inputs, ", ")),
                  .weights = node.weights.size(),
                  .kernels = fmt::format("{}", fmt::join(kernels, ", ")),
                  .confidence =
                      node.kernels.empty() ? "" : FitName(node.kernels[0].fit),
                  .kernel_time = time});
      for (const LayerWeight& weight : node.weights)
        weight_columns.Add(weights, {.layer = name,
                                     .node = node.id,
                                     .weight = weight.name,
                                     .shape = weight.shape,
                                     .dtype = weight.dtype});
    }
    for (const ExternalInput& input : layer.externals)
      input_columns.Add(inputs, {.layer = name,
                                 .id = input.id,
                                 .label = input.label,
                                 .shape = input.shape});
    out.notes.push_back(NoteOf(layer, edges, weights.rows() - weights_before));
  }
  out.tables.push_back(std::move(nodes));
  out.tables.push_back(std::move(inputs));
  out.tables.push_back(std::move(weights));
  return out;
}

}  // namespace lamina::graph
