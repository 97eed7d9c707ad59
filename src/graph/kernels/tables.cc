// SPDX-License-Identifier: Apache-2.0
//
// Kernels of a replayed graph as tables and as a file by layer.
#include <algorithm>

#include "base/decimal.h"
#include "base/escape.h"
#include "graph/kernels/graph_kernels.h"

namespace lamina::graph_kernels {
namespace {

using graph::NodeId;

std::string_view NameOf(const graph::Graph* graph, NodeId id) {
  return graph != nullptr && id.valid() ? (*graph)[id].name
                                        : std::string_view();
}

Table LayerTable(const KernelMap& map) {
  Table table({"layer_times",
               "Device time of the graph by layer, over the full replays.",
               {{"layer", ColumnType::kText,
                 "Layer; shared: in front of them, epilogue: behind."},
                {"kernels", ColumnType::kInt, "Kernels."},
                {"streams", ColumnType::kInt, "Streams."},
                {"median_us", ColumnType::kReal,
                 "Median of the sum of its kernels in each replay."},
                {"p95_us", ColumnType::kReal, "95th percentile of it."}}});
  for (const LayerTime& layer : map.layers) {
    table.Add(layer.name, layer.kernels.size(), layer.streams,
              layer.time.median_ns / 1000,
              static_cast<double>(layer.time.p95_ns) / 1000);
  }
  return table;
}

Table NodeTable(const KernelMap& map, const graph::Graph& graph) {
  Table table({"node_times",
               "Device time by node of the dump, over the full replays.",
               {{"node", ColumnType::kText, "Node of the dump."},
                {"op", ColumnType::kText, "Normalised target."},
                {"layer", ColumnType::kText, "Layer."},
                {"kernels", ColumnType::kInt, "Kernels that it launches."},
                {"median_us", ColumnType::kReal,
                 "Median of the sum of its kernels in each replay."},
                {"p95_us", ColumnType::kReal, "95th percentile of it."},
                {"replays", ColumnType::kInt, "Full replays."}}});
  for (const NodeTime& node : map.nodes) {
    table.Add(graph[node.node].name, graph.op(node.node), node.layer_name,
              node.kernels.size(), node.time.median_ns / 1000,
              static_cast<double>(node.time.p95_ns) / 1000, node.time.count);
  }
  return table;
}

Table KernelTable(const KernelMap& map, const graph::Graph* graph) {
  Table table({"graph_kernels",
               "Every kernel of the graph in order.",
               {{"graph_node_id", ColumnType::kInt, "Id of its graph node."},
                {"layer", ColumnType::kText, "Layer."},
                {"node", ColumnType::kText, "Node of the dump."},
                {"confidence", ColumnType::kText,
                 "exact, sure, likely, ambiguous or none."},
                {"kernel", ColumnType::kText, "Short name."},
                {"stream", ColumnType::kInt, "Stream."},
                {"median_us", ColumnType::kReal, "Median duration."},
                {"p95_us", ColumnType::kReal, "95th percentile."},
                {"full_name", ColumnType::kText, "Name.", Shown::kHidden}}});
  for (const MappedKernel& kernel : map.kernels) {
    const auto known = [](int64_t number) {
      return number == trace::kNoInt ? Value() : Value(number);
    };
    table.Add(known(kernel.slot.node_id), kernel.layer_name,
              NameOf(graph, kernel.node), kernel.confidence, kernel.name,
              known(kernel.slot.stream), kernel.time.median_ns / 1000,
              static_cast<double>(kernel.time.p95_ns) / 1000, kernel.full_name);
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
  std::string out = "{\n \"source\": " + JsonQuote(source);
  const auto number = [&](const char* key, auto value) {
    out += ",\n \"" + std::string(key) + "\": " + std::to_string(value);
  };
  size_t layers = 0;
  for (const LayerTime& layer : map.layers)
    layers += map.kernels[layer.kernels[0]].layer >= 0 ? 1 : 0;
  number("graph_id", map.runs.graph_id);
  number("unique_graph_nodes", map.runs.slots.size());
  number("num_replays", map.runs.full_replays());
  number("num_layers_detected", layers);
  if (extended) {
    number("truncated_replays",
           map.runs.replays.size() - map.runs.full_replays());
    out += ",\n \"skipped_graphs\": [";
    bool first = true;
    for (size_t row = 0; row < map.candidates.rows(); ++row) {
      if (map.candidates.At(row, "chosen").boolean()) continue;
      out += (first ? "" : ", ") +
             std::to_string(map.candidates.At(row, "graph_id").integer());
      first = false;
    }
    out += "]";
  }
  out += ",\n \"layers\": {";
  bool first = true;
  for (const LayerTime& layer : map.layers) {
    if (map.kernels[layer.kernels[0]].layer < 0 ||
        (!only_layer.empty() && layer.name != only_layer))
      continue;
    out += first ? "\n" : ",\n";
    first = false;
    double total = 0;
    std::vector<int64_t> streams;
    for (const size_t k : layer.kernels) {
      total += map.kernels[k].time.median_ns;
      const int64_t stream = map.kernels[k].slot.stream;
      if (std::find(streams.begin(), streams.end(), stream) == streams.end())
        streams.push_back(stream);
    }
    out += "  " + JsonQuote(layer.name) + ": {\"layer\": " +
           (ParseInt(layer.name) ? layer.name : JsonQuote(layer.name)) +
           ", \"num_streams\": " + std::to_string(streams.size()) +
           ", \"stream_ids\": [";
    for (size_t i = 0; i < streams.size(); ++i)
      out += (i > 0 ? ", " : "") + std::to_string(streams[i]);
    out += "], \"kernel_count\": " + std::to_string(layer.kernels.size()) +
           ", \"total_duration_ns\": ";
    AppendNumber(out, total);
    out += ", \"total_duration_us\": ";
    AppendNumber(out, total / 1000);
    out += ",\n   \"kernels\": [";
    for (size_t i = 0; i < layer.kernels.size(); ++i) {
      const MappedKernel& kernel = map.kernels[layer.kernels[i]];
      out += (i > 0 ? ",\n    " : "\n    ") + std::string("{\"index\": ") +
             std::to_string(i) + ", \"kernel\": " + JsonQuote(kernel.name) +
             ", \"full_name\": " + JsonQuote(kernel.full_name) +
             ", \"duration_ns\": ";
      AppendNumber(out, kernel.time.median_ns);
      out += ", \"duration_us\": ";
      AppendNumber(out, kernel.time.median_ns / 1000);
      out += ", \"stream_id\": " + std::to_string(kernel.slot.stream);
      if (extended) {
        out += ", \"p95_us\": ";
        AppendNumber(out, static_cast<double>(kernel.time.p95_ns) / 1000);
        out += ", \"graph_node_id\": " +
               (kernel.slot.node_id == trace::kNoInt
                    ? std::string("null")
                    : std::to_string(kernel.slot.node_id)) +
               ", \"dump_node\": " + JsonQuote(NameOf(graph, kernel.node)) +
               ", \"confidence\": " + JsonQuote(kernel.confidence);
      }
      out += "}";
    }
    out += "\n   ]}";
  }
  return out + "\n }\n}\n";
}

}  // namespace lamina::graph_kernels
