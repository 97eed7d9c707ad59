// SPDX-License-Identifier: Apache-2.0
#include "graph/atlas/atlas.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include "base/escape.h"
#include "graph/draw/draw_layer.h"

namespace lamina::graph {
namespace {

Schema FileSchema() {
  return {"graph_files",
          "Dumps whose layers are drawn, from 0.",
          {{"file", ColumnType::kText, "Dump."},
           {"stage", ColumnType::kText, "Stage of the transform."},
           {"transform", ColumnType::kText, "Transform that wrote it."},
           {"section", ColumnType::kText, "Graph of the dump."}}};
}

Schema LayerSchema() {
  return {"graph_layers",
          "Layers of every dump.",
          {{"file", ColumnType::kInt, "Row of graph_files, from 0."},
           {"layer", ColumnType::kText,
            "Layer; shared and epilogue are what stands in front and behind."},
           {"kind", ColumnType::kInt, "Layers of one kind are alike."},
           {"cut", ColumnType::kInt,
            "Layers of one cut have the same names and times as well."},
           {"nodes", ColumnType::kInt, "Ops."}}};
}

Schema NodeSchema() {
  return {"graph_nodes",
          "Nodes of every kind of layer: its ops in order, then its inputs.",
          {{"kind", ColumnType::kInt, "Kind of layer."},
           {"op", ColumnType::kText, "Normalised target; empty: an input."},
           {"shape", ColumnType::kText, "Shape of the result."},
           {"dtype", ColumnType::kText, "Type of its elements."},
           {"group", ColumnType::kText, "Part of the layer."},
           {"sub_group", ColumnType::kText, "Part of that."},
           {"launches", ColumnType::kBool, "False: a view or a host value."},
           {"second_stream", ColumnType::kBool, "Runs on an auxiliary stream."},
           {"carried", ColumnType::kBool,
            "An input that a layer or the embedding hands on."}}};
}

Schema EdgeSchema() {
  return {"graph_edges",
          "Edges of every kind of layer, by positions of its nodes.",
          {{"kind", ColumnType::kInt, "Kind of layer."},
           {"from", ColumnType::kInt, "Position of the producer."},
           {"to", ColumnType::kInt, "Position of the consumer."}}};
}

Schema NameSchema() {
  return {
      "graph_names",
      "Names of the nodes of every distinct layer.",
      {{"cut", ColumnType::kInt, "Distinct layer."},
       {"node", ColumnType::kText, "Name in the dump."},
       {"label", ColumnType::kText, "What an input is."},
       {"weights", ColumnType::kText, "Weights that it reads, one a line."}}};
}

Schema KernelSchema() {
  return {"graph_node_kernels",
          "Kernels of the nodes, of the trace.",
          {{"cut", ColumnType::kInt, "Distinct layer."},
           {"node", ColumnType::kText, "Node that launches it."},
           {"kernel", ColumnType::kText, "Short name."},
           {"full_name", ColumnType::kText, "Name in the trace."},
           {"median_ns", ColumnType::kReal,
            "Median over the full replays; may end in a half."},
           {"p95_us", ColumnType::kTime, "95th percentile."},
           {"confidence", ColumnType::kText,
            "exact, sure, likely, ambiguous or none."}}};
}

bool IsCarried(const ExternalInput& input) {
  return input.label.starts_with("Layer ") || input.label == "Token embedding";
}

// Fields of a key; no text can hold the separators.
void AppendField(std::string& key, std::string_view text) {
  key += std::to_string(text.size());
  key += ':';
  key += text;
}

// Positions of the inputs of each node: ops first, then what is outside.
using Positions = absl::flat_hash_map<std::string_view, size_t>;
Positions PositionsOf(const LayerGraph& layer) {
  Positions out;
  size_t at = 0;
  for (const LayerNode& node : layer.nodes) out.try_emplace(node.id, at++);
  for (const ExternalInput& input : layer.externals)
    out.try_emplace(input.id, at++);
  return out;
}

std::string WeightText(const LayerNode& node) {
  std::string out;
  for (const LayerWeight& weight : node.weights) {
    out += fmt::format("{}{} {} {}", out.empty() ? "" : "\n", weight.name,
                       weight.shape, weight.dtype);
  }
  return out;
}

}  // namespace

Atlas::Atlas(const GroupRules& rules, const LaunchTable& launches)
    : rules_(rules),
      launches_(launches),
      file_table_(FileSchema()),
      layer_table_(LayerSchema()),
      node_table_(NodeSchema()),
      edge_table_(EdgeSchema()),
      name_table_(NameSchema()),
      kernel_table_(KernelSchema()) {}

void Atlas::Add(const AtlasFile& file, const Graph& graph,
                const Decorate& decorate) {
  if (names_ > kMostNames) {
    ++left_out_;
    return;
  }
  const Layers layers = FindLayers(graph, rules_);
  const std::vector<Group> groups = GroupNodes(graph, layers, rules_);
  const size_t at = files_++;
  file_table_.Add(file.name, file.stage, file.transform, graph.name());
  const auto add = [&](Place place) {
    LayerGraph layer = CutLayer(graph, layers, place, groups, rules_, false);
    if (layer.nodes.empty()) return;
    if (decorate) decorate(layer);
    AddLayer(at, layers.NameOf(place), layer);
  };
  add(kShared);
  for (size_t i = 0; i < layers.layers.size(); ++i) add(static_cast<Place>(i));
  add(kEpilogue);
}

void Atlas::AddLayer(size_t file, const std::string& name,
                     const LayerGraph& layer) {
  const size_t kind = KindOf(layer);
  layer_table_.Add(file, name, kind, CutOf(kind, layer), layer.nodes.size());
}

size_t Atlas::KindOf(const LayerGraph& layer) {
  const std::vector<bool> second = OnSecondStream(layer, rules_);
  const Positions at = PositionsOf(layer);
  std::string key;
  std::vector<std::pair<size_t, size_t>> edges;
  for (size_t i = 0; i < layer.nodes.size(); ++i) {
    const LayerNode& node = layer.nodes[i];
    for (const std::string* const text :
         {&node.op, &node.shape, &node.dtype, &node.group, &node.sub_group})
      AppendField(key, *text);
    key += second[i] ? '2' : '1';
    for (const std::string& input : node.inputs) {
      const auto found = at.find(input);
      if (found == at.end()) continue;
      edges.emplace_back(found->second, i);
      key += ' ' + std::to_string(found->second);
    }
  }
  for (const ExternalInput& input : layer.externals) {
    AppendField(key, input.shape);
    key += IsCarried(input) ? 'c' : '-';
  }
  const auto [found, fresh] = kinds_.try_emplace(std::move(key), kinds_.size());
  const size_t kind = found->second;
  if (!fresh) return kind;
  for (size_t i = 0; i < layer.nodes.size(); ++i) {
    const LayerNode& node = layer.nodes[i];
    node_table_.Add(kind, node.op, node.shape, node.dtype,
                    node.group.empty() ? "other" : node.group, node.sub_group,
                    !launches_.NeverLaunches(node.op), bool(second[i]), false);
  }
  for (const ExternalInput& input : layer.externals) {
    node_table_.Add(kind, "", input.shape, "", "inputs", "", false, false,
                    IsCarried(input));
  }
  for (const auto& [from, to] : edges) edge_table_.Add(kind, from, to);
  return kind;
}

size_t Atlas::CutOf(size_t kind, const LayerGraph& layer) {
  std::string key = std::to_string(kind) + ' ';
  for (const LayerNode& node : layer.nodes) {
    AppendField(key, node.id);
    AppendField(key, WeightText(node));
    for (const LayerKernel& kernel : node.kernels) {
      AppendField(key, kernel.full_name);
      key +=
          fmt::format("{} {} ", kernel.duration_ns, kernel.p95_ns.value_or(-1));
    }
  }
  for (const ExternalInput& input : layer.externals) {
    AppendField(key, input.id);
    AppendField(key, input.label);
  }
  const auto [found, fresh] = cuts_.try_emplace(std::move(key), cuts_.size());
  const size_t cut = found->second;
  if (!fresh) return cut;
  names_ += layer.nodes.size() + layer.externals.size();
  for (const LayerNode& node : layer.nodes) {
    name_table_.Add(cut, node.id, "", WeightText(node));
    for (const LayerKernel& kernel : node.kernels) {
      kernel_table_.Add(cut, node.id, kernel.name, kernel.full_name,
                        kernel.duration_ns, kernel.p95_ns, FitName(kernel.fit));
    }
  }
  for (const ExternalInput& input : layer.externals)
    name_table_.Add(cut, input.id, input.label, "");
  return cut;
}

ResultSet Atlas::Tables() && {
  ResultSet out;
  if (left_out_ > 0) {
    out.notes.push_back(MakeNote(
        Severity::kWarning, "page_left_out",
        fmt::format("The graphs of the last {} dumps are not in this page, "
                    "which holds {} names of nodes; give one dump for its "
                    "graph.",
                    left_out_, names_)));
  }
  for (Table* const table : {&file_table_, &layer_table_, &node_table_,
                             &edge_table_, &name_table_, &kernel_table_})
    out.tables.push_back(std::move(*table));
  return out;
}

}  // namespace lamina::graph
