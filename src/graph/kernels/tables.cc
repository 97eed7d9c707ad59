// SPDX-License-Identifier: Apache-2.0
//
// Kernels of a replayed graph as tables and as a file by layer.
#include <algorithm>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/writer.h"
#include "graph/kernels/graph_kernels.h"
#include "table/row_columns.h"

namespace lamina::graph_kernels {
namespace {

using graph::NodeId;

std::string_view NameOf(const graph::Graph* graph, NodeId id) {
  return graph != nullptr && id.valid() ? (*graph)[id].name
                                        : std::string_view();
}

struct LayerRow {
  std::string_view layer;
  size_t kernels, streams;
  double median, p95;
};

Table LayerTable(const KernelMap& map) {
  const RowColumns<LayerRow> columns{
      "layer_times",
      "Device time of the graph by layer, over the full replays.",
      {{"layer", ColumnType::kText,
        "Layer; shared: in front of them, epilogue: behind.", &LayerRow::layer},
       {"kernels", ColumnType::kInt, "Kernels.", &LayerRow::kernels},
       {"streams", ColumnType::kInt, "Streams.", &LayerRow::streams},
       {"median_us", ColumnType::kReal,
        "Median of the sum of its kernels in each replay.", &LayerRow::median},
       {"p95_us", ColumnType::kReal, "95th percentile of it.",
        &LayerRow::p95}}};
  Table table(columns.schema());
  for (const LayerTime& layer : map.layers) {
    columns.Add(table, {.layer = layer.name,
                        .kernels = layer.kernels.size(),
                        .streams = layer.streams,
                        .median = layer.time.median_ns / 1000,
                        .p95 = static_cast<double>(layer.time.p95_ns) / 1000});
  }
  return table;
}

struct NodeRow {
  std::string_view node, op, layer;
  size_t kernels;
  double median, p95;
  size_t replays;
};

Table NodeTable(const KernelMap& map, const graph::Graph& graph) {
  const RowColumns<NodeRow> columns{
      "node_times",
      "Device time by node of the dump, over the full replays.",
      {{"node", ColumnType::kText, "Node of the dump.", &NodeRow::node},
       {"op", ColumnType::kText, "Normalised target.", &NodeRow::op},
       {"layer", ColumnType::kText, "Layer.", &NodeRow::layer},
       {"kernels", ColumnType::kInt, "Kernels that it launches.",
        &NodeRow::kernels},
       {"median_us", ColumnType::kReal,
        "Median of the sum of its kernels in each replay.", &NodeRow::median},
       {"p95_us", ColumnType::kReal, "95th percentile of it.", &NodeRow::p95},
       {"replays", ColumnType::kInt, "Full replays.", &NodeRow::replays}}};
  Table table(columns.schema());
  for (const NodeTime& node : map.nodes) {
    columns.Add(table, {.node = graph[node.node].name,
                        .op = graph.op(node.node),
                        .layer = node.layer_name,
                        .kernels = node.kernels.size(),
                        .median = node.time.median_ns / 1000,
                        .p95 = static_cast<double>(node.time.p95_ns) / 1000,
                        .replays = node.time.count});
  }
  return table;
}

struct KernelRow {
  std::optional<int64_t> graph_node_id;
  std::string_view layer, node, confidence, kernel;
  std::optional<int64_t> stream;
  double median, p95;
  std::string_view full_name;
};

Table KernelTable(const KernelMap& map, const graph::Graph* graph) {
  const RowColumns<KernelRow> columns{
      "graph_kernels",
      "Every kernel of the graph in order.",
      {{"graph_node_id", ColumnType::kInt, "Id of its graph node.",
        &KernelRow::graph_node_id},
       {"layer", ColumnType::kText, "Layer.", &KernelRow::layer},
       {"node", ColumnType::kText, "Node of the dump.", &KernelRow::node},
       {"confidence", ColumnType::kText,
        "exact, sure, likely, ambiguous or none.", &KernelRow::confidence},
       {"kernel", ColumnType::kText, "Short name.", &KernelRow::kernel},
       {"stream", ColumnType::kInt, "Stream.", &KernelRow::stream},
       {"median_us", ColumnType::kReal, "Median duration.", &KernelRow::median},
       {"p95_us", ColumnType::kReal, "95th percentile.", &KernelRow::p95},
       {"full_name", ColumnType::kText, "Name.", &KernelRow::full_name,
        Shown::kHidden}}};
  Table table(columns.schema());
  for (const MappedKernel& kernel : map.kernels) {
    const auto known = [](int64_t number) {
      return number == trace::kNoInt ? std::nullopt : std::optional(number);
    };
    columns.Add(table, {.graph_node_id = known(kernel.slot.node_id),
                        .layer = kernel.layer_name,
                        .node = NameOf(graph, kernel.node),
                        .confidence = graph::FitName(kernel.fit),
                        .kernel = kernel.name,
                        .stream = known(kernel.slot.stream),
                        .median = kernel.time.median_ns / 1000,
                        .p95 = static_cast<double>(kernel.time.p95_ns) / 1000,
                        .full_name = kernel.full_name});
  }
  return table;
}

}  // namespace

ResultSet KernelTables(KernelMap& map, const graph::Graph* graph) {
  ResultSet out;
  out.tables.push_back(std::move(map.candidates));
  out.tables.push_back(LayerTable(map));
  if (graph != nullptr) out.tables.push_back(NodeTable(map, *graph));
  out.tables.push_back(KernelTable(map, graph));
  out.notes = map.notes;
  return out;
}

std::string KernelJson(const KernelMap& map, const graph::Graph* graph,
                       const std::string& source, bool extended,
                       const std::string& only_layer) {
  using json::Writer;
  constexpr auto kEach = Writer::Lines::kEach;
  std::string out;
  Writer w(out, Writer::Spaces::kAfter, 1);
  size_t layers = 0;
  for (const LayerTime& layer : map.layers)
    layers += map.kernels[layer.kernels[0]].layer >= 0 ? 1 : 0;
  w.Object(kEach);
  w.Text("source", source);
  w.Int("graph_id", map.runs.graph_id);
  w.Int("unique_graph_nodes", map.runs.slots.size());
  w.Int("num_replays", map.runs.full_replays());
  w.Int("num_layers_detected", layers);
  if (extended) {
    w.Int("truncated_replays",
          map.runs.replays.size() - map.runs.full_replays());
    w.Array("skipped_graphs");
    for (size_t row = 0; row < map.candidates.rows(); ++row) {
      if (!map.candidates.At(row, "chosen").boolean())
        w.Int(map.candidates.At(row, "graph_id").integer());
    }
    w.Close();
  }
  w.Object("layers", kEach);
  for (const LayerTime& layer : map.layers) {
    if (map.kernels[layer.kernels[0]].layer < 0 ||
        (!only_layer.empty() && layer.name != only_layer))
      continue;
    double total = 0;
    std::vector<int64_t> streams;
    for (const size_t k : layer.kernels) {
      total += map.kernels[k].time.median_ns;
      const int64_t stream = map.kernels[k].slot.stream;
      if (std::find(streams.begin(), streams.end(), stream) == streams.end())
        streams.push_back(stream);
    }
    w.Object(layer.name);
    w.Raw("layer", ParseInt(layer.name) ? layer.name : JsonQuote(layer.name));
    w.Int("num_streams", streams.size());
    w.Ints("stream_ids", streams);
    w.Int("kernel_count", layer.kernels.size());
    w.Real("total_duration_ns", total);
    w.Real("total_duration_us", total / 1000);
    w.NewLine();
    w.Array("kernels", kEach);
    for (size_t i = 0; i < layer.kernels.size(); ++i) {
      const MappedKernel& kernel = map.kernels[layer.kernels[i]];
      w.Object();
      w.Int("index", i);
      w.Text("kernel", kernel.name);
      w.Text("full_name", kernel.full_name);
      w.Real("duration_ns", kernel.time.median_ns);
      w.Real("duration_us", kernel.time.median_ns / 1000);
      w.Int("stream_id", kernel.slot.stream);
      if (extended) {
        w.Real("p95_us", static_cast<double>(kernel.time.p95_ns) / 1000);
        w.Key("graph_node_id");
        if (kernel.slot.node_id == trace::kNoInt) {
          w.Null();
        } else {
          w.Int(kernel.slot.node_id);
        }
        w.Text("dump_node", NameOf(graph, kernel.node));
        w.Text("confidence", graph::FitName(kernel.fit));
      }
      w.Close();
    }
    w.Close();
    w.Close();
  }
  w.Close();
  w.Close();
  return out + "\n";
}

}  // namespace lamina::graph_kernels
