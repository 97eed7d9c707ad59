// SPDX-License-Identifier: Apache-2.0
#include "graph/layers/tables.h"

#include <algorithm>
#include <map>

#include "base/escape.h"

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
  static std::string KindName(uint32_t kind) {
    return std::string(kind < 26 ? 1 : 2, static_cast<char>('A' + kind % 26)) +
           (kind < 52 ? "" : std::to_string(kind / 26));
  }
  std::string LayersOf(const Kind& kind) const {
    std::vector<uint32_t> numbers;
    for (const Place place : kind.layers)
      numbers.push_back(LayerAt(place).index);
    return RangesOf(numbers);
  }

  Table KindTable() const {
    Table table({"kinds",
                 "Layers by what they compute; layers of one kind are alike up "
                 "to names.",
                 {{"kind", ColumnType::kText, "Short name."},
                  {"stack", ColumnType::kText,
                   "What stands before the layer number in names of weights.",
                   layers_.stacks.size() > 1 ? Shown::kPlain : Shown::kHidden},
                  {"layers", ColumnType::kText, "Layers of the kind."},
                  {"count", ColumnType::kInt, "Number of layers."},
                  {"nodes", ColumnType::kInt, "Ops of each."},
                  {"groups", ColumnType::kText, "Ops by group."},
                  {"note", ColumnType::kText,
                   "odd: few layers among many; first: a run at the begin; "
                   "edge: the first or last layer, different in its norms."},
                  {"difference", ColumnType::kText,
                   "Ops more and less than the nearest other kind has.",
                   Shown::kHidden}}});
    for (size_t k = 0; k < kinds_.kinds.size(); ++k) {
      const Kind& kind = kinds_.kinds[k];
      const Layer& layer = LayerAt(kind.layers[0]);
      table.Add(KindName(static_cast<uint32_t>(k)), StackOf(layer),
                LayersOf(kind), kind.layers.size(), layer.nodes.size(),
                GroupCounts(layer, groups_), kind.note, kind.difference);
    }
    return table;
  }

  Table PartTable() const {
    Table table({"parts",
                 "The graph in front of, in and behind its layers.",
                 {{"part", ColumnType::kText,
                   "shared: in front of the layers or used by several."},
                  {"ops", ColumnType::kInt, "Ops."},
                  {"layers", ColumnType::kInt, "Layers."}}});
    table.Add("shared", layers_.shared.size(), std::nullopt);
    for (const Stack& stack : layers_.stacks) {
      if (stack.count == 0) continue;
      size_t ops = 0;
      for (uint32_t i = 0; i < stack.count; ++i)
        ops += LayerAt(stack.first + static_cast<Place>(i)).nodes.size();
      table.Add(stack.name.empty() ? "layers" : stack.name, ops, stack.count);
    }
    table.Add("epilogue", layers_.epilogue.size(), std::nullopt);
    return table;
  }

  Table LayerTable() const {
    Table table({"layers",
                 "Every layer.",
                 {{"stack", ColumnType::kText, "Stack of the layer."},
                  {"layer", ColumnType::kInt, "Number."},
                  {"kind", ColumnType::kText, "Its kind."},
                  {"nodes", ColumnType::kInt, "Ops."},
                  {"groups", ColumnType::kText, "Ops by group."},
                  {"first_line", ColumnType::kInt, "Line of the first op."},
                  {"last_line", ColumnType::kInt, "Line of the last op."}}});
    for (size_t l = 0; l < layers_.layers.size(); ++l) {
      const Layer& layer = layers_.layers[l];
      const bool empty = layer.nodes.empty();
      table.Add(StackOf(layer), layer.index, KindName(kinds_.of_layer[l]),
                layer.nodes.size(), GroupCounts(layer, groups_),
                empty ? Value() : Value(graph_[layer.nodes.front()].line),
                empty ? Value() : Value(graph_[layer.nodes.back()].line));
    }
    return table;
  }

  Table BoundaryTable() const {
    Table table({"boundaries",
                 "Norms that hold the residual addition of the layer before.",
                 {{"node", ColumnType::kText, "Name of the op."},
                  {"from_layer", ColumnType::kText, "Layer of the addition."},
                  {"to_layer", ColumnType::kText,
                   "Layer of the norm, which the node is counted in."}}});
    for (const Boundary& boundary : layers_.boundaries) {
      table.Add(graph_[boundary.node].name, layers_.NameOf(boundary.from),
                layers_.NameOf(boundary.to));
    }
    return table;
  }

  Table NodeTable() const {
    Table table({"layer_nodes",
                 "Every op and where it belongs.",
                 {{"line", ColumnType::kInt, "Line in the file."},
                  {"node", ColumnType::kText, "Name."},
                  {"op", ColumnType::kText, "Normalised target."},
                  {"layer", ColumnType::kText,
                   "Layer (STACK:N outside of the main stack), shared or "
                   "epilogue."},
                  {"group", ColumnType::kText, "Group; empty outside layers."},
                  {"sub_group", ColumnType::kText, "Part of the group."}}});
    for (const NodeId id : graph_.nodes()) {
      if (graph_[id].kind != NodeKind::kOp) continue;
      table.Add(graph_[id].line, graph_[id].name, graph_.op(id),
                layers_.NameOf(layers_.PlaceOf(id)), groups_[id.value].name,
                groups_[id.value].sub);
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
      who += LayersOf(kind);
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
