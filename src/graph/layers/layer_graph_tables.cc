// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fmt/format.h>

#include "base/counted.h"
#include "base/decimal.h"
#include "graph/layers/layer_graph.h"

namespace lamina::graph {
namespace {

std::string NameOf(const LayerGraph& layer) {
  return (layer.stack.empty() ? "" : layer.stack + ":") +
         std::to_string(layer.index);
}

Note NoteOf(const LayerGraph& layer, size_t edges, size_t weights) {
  std::string text =
      fmt::format("Layer {} of {}: {}, {}, {}, {} from outside.", NameOf(layer),
                  layer.source_file, Counted(layer.nodes.size(), "node"),
                  Counted(edges, "edge"), Counted(weights, "weight"),
                  Counted(layer.externals.size(), "input"));
  if (layer.trace) {
    text += fmt::format(" {} on {} take {} in a replay of median length.",
                        Counted(layer.trace->kernels, "kernel"),
                        Counted(layer.trace->streams, "stream"),
                        HumanTime(std::llround(layer.trace->total_ns)));
  }
  return MakeNote(Severity::kInfo, "graph_layer", std::move(text),
                  {{"graph_layer_nodes", "layer", NameOf(layer), {}}});
}

}  // namespace

ResultSet LayerGraphTables(const std::vector<LayerGraph>& layers) {
  Table nodes(
      {"graph_layer_nodes",
       "Ops of a layer, in the order of the dump.",
       {{"layer", ColumnType::kText, "Layer."},
        {"id", ColumnType::kText, "Node."},
        {"op", ColumnType::kText, "Normalised op."},
        {"shape", ColumnType::kText, "Shape of its result."},
        {"dtype", ColumnType::kText, "Type of its result."},
        {"group", ColumnType::kText, "Part of the layer."},
        {"sub_group", ColumnType::kText, "Part of that."},
        {"inputs", ColumnType::kText,
         "Nodes and inputs from outside that it consumes."},
        {"weights", ColumnType::kInt, "Weights that it consumes."},
        {"kernels", ColumnType::kText, "Kernels on it, with a trace."},
        {"confidence", ColumnType::kText, "How sure the first of them is."},
        {"kernel_time_us", ColumnType::kTime,
         "Their medians over the replays; null: none is known."}}});
  Table inputs({"graph_layer_inputs",
                "What comes from outside of a layer.",
                {{"layer", ColumnType::kText, "Layer."},
                 {"id", ColumnType::kText, "Node outside."},
                 {"label", ColumnType::kText, "What it is."},
                 {"shape", ColumnType::kText, "Shape."}}});
  Table weights({"graph_layer_weights",
                 "Weights of a layer.",
                 {{"layer", ColumnType::kText, "Layer."},
                  {"node", ColumnType::kText, "Node that consumes it."},
                  {"weight", ColumnType::kText, "Name."},
                  {"shape", ColumnType::kText, "Shape."},
                  {"dtype", ColumnType::kText, "Type."}}});
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
      nodes.Add(name, node.id, node.op, node.shape, node.dtype, node.group,
                node.sub_group, fmt::format("{}", fmt::join(node.inputs, ", ")),
                node.weights.size(),
                fmt::format("{}", fmt::join(kernels, ", ")),
                node.kernels.empty() ? "" : FitName(node.kernels[0].fit), time);
      for (const LayerWeight& weight : node.weights)
        weights.Add(name, node.id, weight.name, weight.shape, weight.dtype);
    }
    for (const ExternalInput& input : layer.externals)
      inputs.Add(name, input.id, input.label, input.shape);
    out.notes.push_back(NoteOf(layer, edges, weights.rows() - weights_before));
  }
  out.tables.push_back(std::move(nodes));
  out.tables.push_back(std::move(inputs));
  out.tables.push_back(std::move(weights));
  return out;
}

}  // namespace lamina::graph
