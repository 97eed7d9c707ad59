// SPDX-License-Identifier: Apache-2.0
#include "graph/layers/tables.h"

#include <algorithm>
#include <map>

#include "base/escape.h"
#include "table/row_columns.h"

namespace lamina::graph {
namespace {

// "norm 16, attention 46, mlp 7" in the order of first occurrence.
std::string GroupCounts(const Layer& layer, const std::vector<Group>& groups) {
  std::vector<std::pair<std::string_view, size_t>> counts;
  for (const NodeId id : layer.nodes) {
    const std::string_view name = groups[id.value].name;
    const auto found =
        std::find_if(counts.begin(), counts.end(),
                     [&](const auto& entry) { return entry.first == name; });
    if (found == counts.end()) {
      counts.emplace_back(name, 1);
    } else {
      ++found->second;
    }
  }
  std::string out;
  for (const auto& [name, count] : counts) {
    if (!out.empty()) out += ", ";
    out += std::string(name) + " " + std::to_string(count);
  }
  return out;
}

struct KindRow {
  std::string kind;
  std::string_view stack;
  std::string layers;
  size_t count, nodes;
  std::string groups;
  std::string_view note, difference;
};

struct PartRow {
  std::string part;
  size_t ops;
  std::optional<uint32_t> layers;
};

struct LayerRow {
  std::string_view stack;
  uint32_t layer;
  std::string kind;
  size_t nodes;
  std::string groups;
  std::optional<uint32_t> first_line, last_line;
};

struct BoundaryRow {
  std::string_view node;
  std::string from_layer, to_layer;
};

struct NodeRow {
  uint32_t line;
  std::string_view node, op;
  std::string layer;
  std::string_view group, sub_group;
};

class Writer {
 public:
  Writer(const Graph& graph, const Layers& layers,
         const std::vector<Group>& groups, const Kinds& kinds)
      : graph_(graph), layers_(layers), groups_(groups), kinds_(kinds) {}

  ResultSet Run() {
    out_.tables.push_back(KindTable());
    out_.tables.push_back(PartTable());
    out_.tables.push_back(LayerTable());
    out_.tables.push_back(BoundaryTable());
    out_.tables.push_back(NodeTable());
    Notes();
    return std::move(out_);
  }

 private:
  const Layer& LayerAt(Place place) const {
    return layers_.layers[static_cast<size_t>(place)];
  }
  const std::string& StackOf(const Layer& layer) const {
    return layers_.stacks[layer.stack].name;
  }

  Table KindTable() const {
    const RowColumns<KindRow> columns{
        "kinds",
        "Layers by what they compute; layers of one kind are alike up "
        "to names.",
        {{"kind", ColumnType::kText, "Short name.", &KindRow::kind},
         {"stack", ColumnType::kText,
          "What stands before the layer number in names of weights.",
          &KindRow::stack,
          layers_.stacks.size() > 1 ? Shown::kPlain : Shown::kHidden},
         {"layers", ColumnType::kText, "Layers of the kind.", &KindRow::layers},
         {"count", ColumnType::kInt, "Number of layers.", &KindRow::count},
         {"nodes", ColumnType::kInt, "Ops of each.", &KindRow::nodes},
         {"groups", ColumnType::kText, "Ops by group.", &KindRow::groups},
         {"note", ColumnType::kText,
          "odd: few layers among many; first: a run at the begin; "
          "edge: the first or last layer, different in its norms.",
          &KindRow::note},
         {"difference", ColumnType::kText,
          "Ops more and less than the nearest other kind has.",
          &KindRow::difference, Shown::kHidden}}};
    Table table(columns.schema());
    for (size_t k = 0; k < kinds_.kinds.size(); ++k) {
      const Kind& kind = kinds_.kinds[k];
      const Layer& layer = LayerAt(kind.layers[0]);
      columns.Add(table, {.kind = KindName(static_cast<uint32_t>(k)),
                          .stack = StackOf(layer),
                          .layers = LayersOf(kind, layers_),
                          .count = kind.layers.size(),
                          .nodes = layer.nodes.size(),
                          .groups = GroupCounts(layer, groups_),
                          .note = kind.note,
                          .difference = kind.difference});
    }
    return table;
  }

  Table PartTable() const {
    const RowColumns<PartRow> columns{
        "parts",
        "The graph in front of, in and behind its layers.",
        {{"part", ColumnType::kText,
          "shared: in front of the layers or used by several.", &PartRow::part},
         {"ops", ColumnType::kInt, "Ops.", &PartRow::ops},
         {"layers", ColumnType::kInt, "Layers.", &PartRow::layers}}};
    Table table(columns.schema());
    columns.Add(table, {.part = "shared",
                        .ops = layers_.shared.size(),
                        .layers = std::nullopt});
    for (const Stack& stack : layers_.stacks) {
      if (stack.count == 0) continue;
      size_t ops = 0;
      for (uint32_t i = 0; i < stack.count; ++i)
        ops += LayerAt(stack.first + static_cast<Place>(i)).nodes.size();
      columns.Add(table, {.part = stack.name.empty() ? "layers" : stack.name,
                          .ops = ops,
                          .layers = stack.count});
    }
    columns.Add(table, {.part = "epilogue",
                        .ops = layers_.epilogue.size(),
                        .layers = std::nullopt});
    return table;
  }

  Table LayerTable() const {
    const RowColumns<LayerRow> columns{
        "layers",
        "Every layer.",
        {{"stack", ColumnType::kText, "Stack of the layer.", &LayerRow::stack},
         {"layer", ColumnType::kInt, "Number.", &LayerRow::layer},
         {"kind", ColumnType::kText, "Its kind.", &LayerRow::kind},
         {"nodes", ColumnType::kInt, "Ops.", &LayerRow::nodes},
         {"groups", ColumnType::kText, "Ops by group.", &LayerRow::groups},
         {"first_line", ColumnType::kInt, "Line of the first op.",
          &LayerRow::first_line},
         {"last_line", ColumnType::kInt, "Line of the last op.",
          &LayerRow::last_line}}};
    Table table(columns.schema());
    for (size_t l = 0; l < layers_.layers.size(); ++l) {
      const Layer& layer = layers_.layers[l];
      const bool empty = layer.nodes.empty();
      columns.Add(table,
                  {.stack = StackOf(layer),
                   .layer = layer.index,
                   .kind = KindName(kinds_.of_layer[l]),
                   .nodes = layer.nodes.size(),
                   .groups = GroupCounts(layer, groups_),
                   .first_line =
                       empty ? std::nullopt
                             : std::optional(graph_[layer.nodes.front()].line),
                   .last_line =
                       empty ? std::nullopt
                             : std::optional(graph_[layer.nodes.back()].line)});
    }
    return table;
  }

  Table BoundaryTable() const {
    const RowColumns<BoundaryRow> columns{
        "boundaries",
        "Norms that hold the residual addition of the layer before.",
        {{"node", ColumnType::kText, "Name of the op.", &BoundaryRow::node},
         {"from_layer", ColumnType::kText, "Layer of the addition.",
          &BoundaryRow::from_layer},
         {"to_layer", ColumnType::kText,
          "Layer of the norm, which the node is counted in.",
          &BoundaryRow::to_layer}}};
    Table table(columns.schema());
    for (const Boundary& boundary : layers_.boundaries) {
      columns.Add(table, {.node = graph_[boundary.node].name,
                          .from_layer = layers_.NameOf(boundary.from),
                          .to_layer = layers_.NameOf(boundary.to)});
    }
    return table;
  }

  Table NodeTable() const {
    const RowColumns<NodeRow> columns{
        "layer_nodes",
        "Every op and where it belongs.",
        {{"line", ColumnType::kInt, "Line in the file.", &NodeRow::line},
         {"node", ColumnType::kText, "Name.", &NodeRow::node},
         {"op", ColumnType::kText, "Normalised target.", &NodeRow::op},
         {"layer", ColumnType::kText,
          "Layer (STACK:N outside of the main stack), shared or "
          "epilogue.",
          &NodeRow::layer},
         {"group", ColumnType::kText, "Group; empty outside layers.",
          &NodeRow::group},
         {"sub_group", ColumnType::kText, "Part of the group.",
          &NodeRow::sub_group}}};
    Table table(columns.schema());
    for (const NodeId id : graph_.nodes()) {
      if (graph_[id].kind != NodeKind::kOp) continue;
      columns.Add(table, {.line = graph_[id].line,
                          .node = graph_[id].name,
                          .op = graph_.op(id),
                          .layer = layers_.NameOf(layers_.PlaceOf(id)),
                          .group = groups_[id.value].name,
                          .sub_group = groups_[id.value].sub});
    }
    return table;
  }

  void Say(Severity severity, const char* id, std::string text) {
    out_.notes.push_back(MakeNote(severity, id, std::move(text)));
  }

  void Notes() {
    if (layers_.layers.empty()) {
      Say(Severity::kWarning, "no_layers",
          "No weight name holds a layer number (layers_N_, blocks_N_, h_N_), "
          "so there are no layers to find.");
    }
    for (const Kind& kind : kinds_.kinds) {
      if (kind.note.empty() || kind.difference.empty()) continue;
      const bool one = kind.layers.size() == 1;
      const bool odd = kind.note == "odd";
      std::string who = one ? "Layer " : "Layers ";
      who += LayersOf(kind, layers_);
      if (layers_.stacks.size() > 1)
        who += " of " + layers_.stacks[kind.stack].name;
      Say(odd ? Severity::kWarning : Severity::kInfo,
          odd ? "odd_layer" : "layer_kind",
          EscapeTerminal(who) + (one ? " differs" : " differ") +
              (odd ? " from the others: " : ": ") +
              EscapeTerminal(kind.difference) + ".");
    }
    for (const Stack& stack : layers_.stacks) {
      if (stack.count == 0) continue;
      const uint32_t first = LayerAt(stack.first).index;
      const uint32_t last =
          LayerAt(stack.first + static_cast<Place>(stack.count) - 1).index;
      if (first == 0 && last + 1 == stack.count) continue;
      Say(Severity::kWarning, "layer_gap",
          "The layers of '" + EscapeTerminal(stack.name) + "' run from " +
              std::to_string(first) + " to " + std::to_string(last) +
              ", and there are " + std::to_string(stack.count) + ".");
    }
  }

  const Graph& graph_;
  const Layers& layers_;
  const std::vector<Group>& groups_;
  const Kinds& kinds_;
  ResultSet out_;
};

}  // namespace

ResultSet LayerTables(const Graph& graph, const Layers& layers,
                      const std::vector<Group>& groups, const Kinds& kinds) {
  return Writer(graph, layers, groups, kinds).Run();
}

}  // namespace lamina::graph
