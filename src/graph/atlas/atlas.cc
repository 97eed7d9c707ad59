// SPDX-License-Identifier: Apache-2.0
#include "graph/atlas/atlas.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/format.h>

#include "base/escape.h"
#include "graph/draw/draw_layer.h"
#include "table/row_columns.h"

namespace lamina::graph {
namespace {

struct FileRow {
  std::string_view file, stage, transform, section;
};

const RowColumns<FileRow>& FileColumns() {
  static const RowColumns<FileRow> columns{
      "graph_files",
      "Dumps whose layers are drawn, from 0.",
      {{"file", ColumnType::kText, "Dump.", &FileRow::file},
       {"stage", ColumnType::kText, "Stage of the transform.", &FileRow::stage},
       {"transform", ColumnType::kText, "Transform that wrote it.",
        &FileRow::transform},
       {"section", ColumnType::kText, "Graph of the dump.",
        &FileRow::section}}};
  return columns;
}

struct LayerRow {
  size_t file;
  std::string_view layer;
  size_t kind, cut, nodes;
  bool traced;
  std::string title;
  std::string legend;
  std::string off_nodes;
};

const RowColumns<LayerRow>& LayerColumns() {
  static const RowColumns<LayerRow> columns{
      "graph_layers",
      "Layers of every dump.",
      {{"file", ColumnType::kInt, "Row of graph_files, from 0.",
        &LayerRow::file},
       {"layer", ColumnType::kText,
        "Layer; shared and epilogue are what stands in front and behind.",
        &LayerRow::layer},
       {"kind", ColumnType::kInt, "Layers of one kind are alike.",
        &LayerRow::kind},
       {"cut", ColumnType::kInt,
        "Layers of one cut have the same names and times as well.",
        &LayerRow::cut},
       {"nodes", ColumnType::kInt, "Ops.", &LayerRow::nodes},
       {"traced", ColumnType::kBool, "Drawn with the kernels of a trace.",
        &LayerRow::traced},
       {"title", ColumnType::kText,
        "What its picture says above it; with kernels their times.",
        &LayerRow::title},
       {"legend", ColumnType::kText,
        "What its colours mean, one a line: colour, tab, text.",
        &LayerRow::legend},
       {"off_nodes", ColumnType::kText,
        "Its kernels that are on no node, one a line behind their sum; mostly "
        "empty.",
        &LayerRow::off_nodes}}};
  return columns;
}

struct NodeRow {
  size_t kind;
  std::string_view op, shape, dtype, group, sub_group;
  bool launches, second_stream, carried, dashed, forks;
  std::string_view frame, frame_fill, part, part_fill, fill, bar;
};

const RowColumns<NodeRow>& NodeColumns() {
  static const RowColumns<NodeRow> columns{
      "graph_nodes",
      "Nodes of every kind of layer: its ops in order, then its inputs.",
      {{"kind", ColumnType::kInt, "Kind of layer.", &NodeRow::kind},
       {"op", ColumnType::kText, "Normalised target; empty: an input.",
        &NodeRow::op},
       {"shape", ColumnType::kText, "Shape of the result.", &NodeRow::shape},
       {"dtype", ColumnType::kText, "Type of its elements.", &NodeRow::dtype},
       {"group", ColumnType::kText, "Part of the layer.", &NodeRow::group},
       {"sub_group", ColumnType::kText, "Part of that.", &NodeRow::sub_group},
       {"launches", ColumnType::kBool, "False: a view or a host value.",
        &NodeRow::launches},
       {"second_stream", ColumnType::kBool, "Runs on an auxiliary stream.",
        &NodeRow::second_stream},
       {"carried", ColumnType::kBool,
        "An input that a layer or the embedding hands on.", &NodeRow::carried},
       {"dashed", ColumnType::kBool, "Its border is dashed.", &NodeRow::dashed},
       {"forks", ColumnType::kBool,
        "Begins, ends or waits for work on an auxiliary stream.",
        &NodeRow::forks},
       {"frame", ColumnType::kText, "Title of the frame around it.",
        &NodeRow::frame},
       {"frame_fill", ColumnType::kText, "Its colour.", &NodeRow::frame_fill},
       {"part", ColumnType::kText, "Title of the frame inside of that.",
        &NodeRow::part},
       {"part_fill", ColumnType::kText, "Its colour.", &NodeRow::part_fill},
       {"fill", ColumnType::kText, "Colour of its group.", &NodeRow::fill},
       {"bar", ColumnType::kText, "Colour of its stream; empty: the main one.",
        &NodeRow::bar}}};
  return columns;
}

struct EdgeRow {
  size_t kind, from, to;
  std::string_view label;
};

const RowColumns<EdgeRow>& EdgeColumns() {
  static const RowColumns<EdgeRow> columns{
      "graph_edges",
      "Edges of every kind of layer, by positions of its nodes.",
      {{"kind", ColumnType::kInt, "Kind of layer.", &EdgeRow::kind},
       {"from", ColumnType::kInt, "Position of the producer.", &EdgeRow::from},
       {"to", ColumnType::kInt, "Position of the consumer.", &EdgeRow::to},
       {"label", ColumnType::kText, "What it is, in a word; mostly empty.",
        &EdgeRow::label}}};
  return columns;
}

struct NameRow {
  size_t cut;
  std::string_view node, label;
  std::string weights, lines;
  std::string_view heat, badge;
  bool heavy = false;
};

const RowColumns<NameRow>& NameColumns() {
  static const RowColumns<NameRow> columns{
      "graph_names",
      "Names of the nodes of every distinct layer.",
      {{"cut", ColumnType::kInt, "Distinct layer.", &NameRow::cut},
       {"node", ColumnType::kText, "Name in the dump.", &NameRow::node},
       {"label", ColumnType::kText, "What an input is.", &NameRow::label},
       {"weights", ColumnType::kText, "Weights that it reads, one a line.",
        &NameRow::weights},
       {"lines", ColumnType::kText,
        "Lines of its box: b label, w weight, s shape, k kernel, x other; i "
        "its name.",
        &NameRow::lines},
       {"heat", ColumnType::kText,
        "Colour by its share of the time; empty without kernels.",
        &NameRow::heat},
       {"badge", ColumnType::kText, "Its time and share.", &NameRow::badge},
       {"heavy", ColumnType::kBool, "Its border is heavy.", &NameRow::heavy}}};
  return columns;
}

struct KernelRow {
  size_t cut;
  std::string_view node, kernel, full_name;
  double median;
  std::optional<int64_t> p95;
  std::string_view confidence;
};

const RowColumns<KernelRow>& KernelColumns() {
  static const RowColumns<KernelRow> columns{
      "graph_node_kernels",
      "Kernels of the nodes, of the trace.",
      {{"cut", ColumnType::kInt, "Distinct layer.", &KernelRow::cut},
       {"node", ColumnType::kText, "Node that launches it.", &KernelRow::node},
       {"kernel", ColumnType::kText, "Short name.", &KernelRow::kernel},
       {"full_name", ColumnType::kText, "Name in the trace.",
        &KernelRow::full_name},
       {"median_ns", ColumnType::kReal,
        "Median over the full replays; may end in a half.", &KernelRow::median},
       {"p95_us", ColumnType::kTime, "95th percentile.", &KernelRow::p95},
       {"confidence", ColumnType::kText,
        "exact, sure, likely, ambiguous or none.", &KernelRow::confidence}}};
  return columns;
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

// The frame around each box, and the one inside of that; by position.
struct Framed {
  const render::DotCluster* frame = nullptr;
  const render::DotCluster* part = nullptr;
};
std::vector<Framed> FramesOf(const render::DotGraph& scene) {
  std::vector<Framed> out(scene.nodes.size());
  for (const render::DotCluster& frame : scene.clusters) {
    for (const uint32_t node : frame.nodes) out[node].frame = &frame;
    for (const render::DotCluster& part : frame.clusters) {
      for (const uint32_t node : part.nodes) out[node] = {&frame, &part};
    }
  }
  return out;
}

std::string_view TitleOf(const render::DotCluster* cluster) {
  return cluster == nullptr ? std::string_view() : cluster->title;
}
std::string_view FillOf(const render::DotCluster* cluster) {
  return cluster == nullptr ? std::string_view() : cluster->fill;
}

// The name of the node itself is written once, in its own column.
std::string LinesOf(const render::DotNode& box) {
  std::string out;
  for (const render::DotLine& line : box.lines) {
    if (!out.empty()) out += '\n';
    if (line.text == box.id && KindOf(line) == LineKind::kSoft) {
      out += 'i';
      continue;
    }
    out += static_cast<char>(KindOf(line));
    for (const char c : line.text) out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string LegendOf(const render::DotGraph& scene) {
  std::string out;
  const auto legend =
      std::find_if(scene.nodes.begin(), scene.nodes.end(),
                   [](const auto& box) { return box.id == kLegend; });
  if (legend == scene.nodes.end()) return out;
  for (const render::DotLine& line : legend->lines)
    out += (out.empty() ? "" : "\n") + line.swatch + '\t' + line.text;
  return out;
}

// Kernels of no node belong to no kind: every layer has its own.
std::string OffNodesOf(const render::DotGraph& scene) {
  std::string out;
  const auto box =
      std::find_if(scene.nodes.begin(), scene.nodes.end(),
                   [](const auto& one) { return one.id == kOffNodes; });
  if (box == scene.nodes.end()) return out;
  for (const render::DotLine& line : box->lines) {
    if (!out.empty()) out += '\n';
    for (const char c : line.text) out += c == '\n' ? ' ' : c;
  }
  return out;
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

Atlas::Atlas(const GroupRules& rules, const LaunchTable& launches,
             const DrawOptions& options)
    : rules_(rules),
      launches_(launches),
      options_(options),
      file_table_(FileColumns().schema()),
      layer_table_(LayerColumns().schema()),
      node_table_(NodeColumns().schema()),
      edge_table_(EdgeColumns().schema()),
      name_table_(NameColumns().schema()),
      kernel_table_(KernelColumns().schema()) {}

void Atlas::Add(const AtlasFile& file, const Graph& graph,
                const Decorate& decorate) {
  if (names_ > kMostNames) {
    ++left_out_;
    return;
  }
  const Layers layers = FindLayers(graph, rules_);
  const std::vector<Group> groups = GroupNodes(graph, layers, rules_);
  const Kinds kinds = FindKinds(graph, layers, groups);
  const size_t at = files_++;
  FileColumns().Add(file_table_, {.file = file.name,
                                  .stage = file.stage,
                                  .transform = file.transform,
                                  .section = graph.name()});
  const auto add = [&](Place place) {
    LayerGraph layer = CutLayer(graph, layers, place, groups, rules_, false);
    if (layer.nodes.empty()) return;
    layer.source_file = file.name;
    NameKind(layer, layers, kinds, place);
    if (decorate) decorate(layer);
    AddLayer(at, layers.NameOf(place), layer);
  };
  add(kShared);
  for (size_t i = 0; i < layers.layers.size(); ++i) add(static_cast<Place>(i));
  add(kEpilogue);
}

void Atlas::AddLayer(size_t file, const std::string& name,
                     const LayerGraph& layer) {
  const render::DotGraph scene = DrawLayer(layer, rules_, options_);
  const size_t kind = KindOf(layer, scene);
  LayerColumns().Add(layer_table_, {.file = file,
                                    .layer = name,
                                    .kind = kind,
                                    .cut = CutOf(kind, layer, scene),
                                    .nodes = layer.nodes.size(),
                                    .traced = layer.trace.has_value(),
                                    .title = scene.title,
                                    .legend = LegendOf(scene),
                                    .off_nodes = OffNodesOf(scene)});
}

size_t Atlas::KindOf(const LayerGraph& layer, const render::DotGraph& scene) {
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
    key += scene.nodes[i].bar;
    if (node.boundary) key += 'b';
    if (!node.weights.empty()) key += 'w';
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
  const std::vector<Framed> frames = FramesOf(scene);
  for (size_t i = 0; i < layer.nodes.size(); ++i) {
    const LayerNode& node = layer.nodes[i];
    const render::DotNode& box = scene.nodes[i];
    NodeColumns().Add(node_table_,
                      {.kind = kind,
                       .op = node.op,
                       .shape = node.shape,
                       .dtype = node.dtype,
                       .group = node.group.empty() ? "other" : node.group,
                       .sub_group = node.sub_group,
                       .launches = !launches_.NeverLaunches(node.op),
                       .second_stream = bool(second[i]),
                       .carried = false,
                       .dashed = box.dashed,
                       .forks = Matches(rules_.aux_streams, node.op),
                       .frame = TitleOf(frames[i].frame),
                       .frame_fill = FillOf(frames[i].frame),
                       .part = TitleOf(frames[i].part),
                       .part_fill = FillOf(frames[i].part),
                       .fill = box.band.empty() ? box.fill : box.band,
                       .bar = box.circle ? box.fill : box.bar});
  }
  const auto inputs = std::find_if(
      scene.clusters.begin(), scene.clusters.end(),
      [](const auto& cluster) { return cluster.title == kInputs; });
  for (const ExternalInput& input : layer.externals) {
    const render::DotCluster* const frame =
        IsCarried(input) && inputs != scene.clusters.end() ? &*inputs : nullptr;
    const render::DotNode box = DrawInput(input, rules_);
    NodeColumns().Add(node_table_, {.kind = kind,
                                    .op = "",
                                    .shape = input.shape,
                                    .dtype = "",
                                    .group = "inputs",
                                    .sub_group = "",
                                    .launches = false,
                                    .second_stream = false,
                                    .carried = IsCarried(input),
                                    .dashed = false,
                                    .forks = false,
                                    .frame = TitleOf(frame),
                                    .frame_fill = FillOf(frame),
                                    .part = "",
                                    .part_fill = "",
                                    .fill = box.fill,
                                    .bar = ""});
  }
  absl::flat_hash_map<std::pair<size_t, size_t>, std::string_view> labels;
  for (const render::DotEdge& edge : scene.edges) {
    if (edge.label != kResidual) continue;  // others are times
    const auto from = at.find(edge.from);
    const auto to = at.find(edge.to);
    if (from != at.end() && to != at.end())
      labels[{from->second, to->second}] = edge.label;
  }
  for (const auto& [from, to] : edges) {
    const auto label = labels.find({from, to});
    EdgeColumns().Add(
        edge_table_,
        {.kind = kind,
         .from = from,
         .to = to,
         .label = label == labels.end() ? std::string_view() : label->second});
  }
  return kind;
}

size_t Atlas::CutOf(size_t kind, const LayerGraph& layer,
                    const render::DotGraph& scene) {
  const bool claimed = !layer.trace || layer.trace->claimed;
  std::string key = std::to_string(kind) + ' ';
  for (size_t i = 0; i < layer.nodes.size(); ++i) {
    const LayerNode& node = layer.nodes[i];
    AppendField(key, node.id);
    AppendField(key, WeightText(node));
    AppendField(key, scene.nodes[i].badge);
    key += claimed ? '+' : '-';
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
  for (size_t i = 0; i < layer.nodes.size(); ++i) {
    const LayerNode& node = layer.nodes[i];
    const render::DotNode& box = scene.nodes[i];
    NameColumns().Add(name_table_,
                      {.cut = cut,
                       .node = node.id,
                       .label = "",
                       .weights = WeightText(node),
                       .lines = LinesOf(box),
                       .heat = box.band.empty() ? std::string_view() : box.fill,
                       .badge = box.badge,
                       .heavy = box.pen >= 2});
    if (!claimed) continue;  // drawn, and said of no node
    for (const LayerKernel& kernel : node.kernels) {
      KernelColumns().Add(kernel_table_, {.cut = cut,
                                          .node = node.id,
                                          .kernel = kernel.name,
                                          .full_name = kernel.full_name,
                                          .median = kernel.duration_ns,
                                          .p95 = kernel.p95_ns,
                                          .confidence = FitName(kernel.fit)});
    }
  }
  for (const ExternalInput& input : layer.externals)
    NameColumns().Add(name_table_, {.cut = cut,
                                    .node = input.id,
                                    .label = input.label,
                                    .weights = "",
                                    .lines = LinesOf(DrawInput(input, rules_)),
                                    .heat = "",
                                    .badge = ""});
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
