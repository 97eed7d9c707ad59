// SPDX-License-Identifier: Apache-2.0

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <map>

#include "base/escape.h"
#include "base/string_pool.h"
#include "graph/layers/kinds.h"
#include "table/row_columns.h"

namespace lamina::graph {

namespace {

constexpr uint32_t kOutside = NodeId::kNone;

class Sorter {
 public:
  Sorter(const Graph& graph, const Layers& layers,
         const std::vector<Group>& groups)
      : graph_(graph), layers_(layers), groups_(groups) {}

  Kinds Run() {
    TextMap<uint32_t> known;
    std::vector<uint32_t> position(graph_.size(), kOutside);
    for (size_t l = 0; l < layers_.layers.size(); ++l) {
      const Layer& layer = layers_.layers[l];
      for (size_t i = 0; i < layer.nodes.size(); ++i)
        position[layer.nodes[i].value] = static_cast<uint32_t>(i);
      std::string text = std::to_string(layer.stack) + "\n";
      for (const NodeId id : layer.nodes)
        text += SignatureOf(graph_, id, position) + "\n";
      for (const NodeId id : layer.nodes) position[id.value] = kOutside;
      const auto [found, fresh] = known.try_emplace(
          std::move(text), static_cast<uint32_t>(out_.kinds.size()));
      if (fresh) out_.kinds.push_back({layer.stack, {}, {}, {}});
      out_.kinds[found->second].layers.push_back(static_cast<Place>(l));
      out_.of_layer.push_back(found->second);
    }
    std::vector<Place> lead;
    for (const Stack& stack : layers_.stacks) lead.push_back(stack.first);
    for (Kind& kind : out_.kinds) Judge(kind, lead[kind.stack]);
    return std::move(out_);
  }

 private:
  using Ops = std::map<std::string_view, int>;

  const std::vector<NodeId>& NodesOf(const Kind& kind) const {
    return layers_.layers[static_cast<size_t>(kind.layers[0])].nodes;
  }

  // Counts of ops; norms and what takes their results apart only if `norms`.
  Ops OpsOf(const Kind& kind, bool norms) const {
    Ops out;
    for (const NodeId id : NodesOf(kind)) {
      if (norms || groups_[id.value].name != "norm") ++out[graph_.op(id)];
    }
    return out;
  }

  static Ops Minus(Ops a, const Ops& b) {
    for (const auto& [op, count] : b) a[op] -= count;
    std::erase_if(a, [](const auto& entry) { return entry.second == 0; });
    return a;
  }

  // The kind of the same stack and at least as many layers with the least
  // difference.
  const Kind* Nearest(const Kind& kind) const {
    const Kind* best = nullptr;
    int least = 0;
    const Ops mine = OpsOf(kind, true);
    for (const Kind& other : out_.kinds) {
      if (&other == &kind || other.stack != kind.stack ||
          other.layers.size() < kind.layers.size())
        continue;
      int distance = 0;
      for (const auto& [op, count] : Minus(OpsOf(other, true), mine))
        distance += std::abs(count);
      if (best == nullptr || distance < least ||
          (distance == least && other.layers.size() > best->layers.size())) {
        best = &other;
        least = distance;
      }
    }
    return best;
  }

  // `lead` is the end of the kinds so far that only stand at the begin.
  void Judge(Kind& kind, Place& lead) {
    const Kind* near = Nearest(kind);
    if (near == nullptr) return;
    kind.difference = Difference(kind, *near);
    const Stack& stack = layers_.stacks[kind.stack];
    const Place first = stack.first;
    const Place last = first + static_cast<Place>(stack.count) - 1;
    const size_t count = kind.layers.size();
    const Place begin = kind.layers[0];
    const Place end = kind.layers.back() + 1;
    const bool leading =
        begin == lead && end == begin + static_cast<Place>(count);
    if (count == 1 && (begin == first || begin == last)) {
      if (Minus(OpsOf(kind, false), OpsOf(*near, false)).empty())
        kind.note = "edge";
      if (begin == first) lead = end;
    } else if (count > 1 && leading) {
      if (count * 10 < stack.count) kind.note = "first";
      lead = end;
    } else if (count == 1 || count * 10 < stack.count) {
      kind.note = "odd";
    }
  }

  std::string Difference(const Kind& kind, const Kind& other) const {
    std::string out;
    for (const auto& [op, count] :
         Minus(OpsOf(kind, true), OpsOf(other, true))) {
      if (!out.empty()) out += ", ";
      out += (count > 0 ? "+" : "-") + std::to_string(std::abs(count)) + " ";
      out += op;
    }
    if (!out.empty()) return out;
    // The same ops: the first one that differs in its result, then in the
    // order of ops, else the wiring.
    const std::vector<NodeId>& mine = NodesOf(kind);
    const std::vector<NodeId>& theirs = NodesOf(other);
    for (size_t i = 0; i < mine.size(); ++i) {
      const Node& a = graph_[mine[i]];
      const Node& b = graph_[theirs[i]];
      if (a.op == b.op && a.result == b.result) continue;
      if (a.op != b.op)
        return "other order from " + std::string(a.name) + " on";
      return std::string(a.name) + " is " + std::string(a.result) +
             " instead of " + std::string(b.result);
    }
    for (size_t i = 0; i < mine.size(); ++i) {
      if (Wiring(mine, i) != Wiring(theirs, i))
        return "other operands of " + std::string(graph_[mine[i]].name);
    }
    return "other number of weights";
  }

  std::string Wiring(const std::vector<NodeId>& nodes, size_t at) const {
    std::string out;
    for (const Operand& operand : graph_.Operands(nodes[at])) {
      if (!operand.IsValue()) continue;
      const auto found = std::find(nodes.begin(), nodes.end(), operand.value());
      out += found == nodes.end() ? "x "
                                  : std::to_string(found - nodes.begin()) + " ";
    }
    return out;
  }

  const Graph& graph_;
  const Layers& layers_;
  const std::vector<Group>& groups_;
  Kinds out_;
};

}  // namespace

std::string SignatureOf(const Graph& graph, NodeId id,
                        const std::vector<uint32_t>& position_in_layer) {
  std::string out(graph.op(id));
  size_t weights = 0;
  out += '(';
  for (const Operand& operand : graph.Operands(id)) {
    if (!operand.IsValue()) continue;
    if (graph[operand.value()].kind == NodeKind::kWeight) {
      ++weights;
      continue;
    }
    const uint32_t at = position_in_layer[operand.value().value];
    out += at == kOutside ? "x" : std::to_string(at);
    out += ',';
  }
  out += ") " + std::to_string(weights) + " ";
  out += graph[id].result;
  return out;
}

std::string RangesOf(const std::vector<uint32_t>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t j = i + 1;
    while (j < numbers.size() && numbers[j] == numbers[j - 1] + 1) ++j;
    if (!out.empty()) out += ", ";
    out += std::to_string(numbers[i]);
    if (j > i + 1) out += "-" + std::to_string(numbers[j - 1]);
    i = j;
  }
  return out;
}

std::string KindName(uint32_t kind) {
  return std::string(kind < 26 ? 1 : 2, static_cast<char>('A' + kind % 26)) +
         (kind < 52 ? "" : std::to_string(kind / 26));
}

std::string LayersOf(const Kind& kind, const Layers& layers) {
  std::vector<uint32_t> numbers;
  for (const Place place : kind.layers)
    numbers.push_back(layers.layers[static_cast<size_t>(place)].index);
  return RangesOf(numbers);
}

Kinds FindKinds(const Graph& graph, const Layers& layers,
                const std::vector<Group>& groups) {
  return Sorter(graph, layers, groups).Run();
}

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

struct LayerNodeRow {
  uint32_t line;
  std::string_view node, op;
  std::string layer;
  std::string_view group, sub_group;
};

class TablesWriter {
 public:
  TablesWriter(const Graph& graph, const Layers& layers,
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
    const RowColumns<LayerNodeRow> columns{
        "layer_nodes",
        "Every op and where it belongs.",
        {{"line", ColumnType::kInt, "Line in the file.", &LayerNodeRow::line},
         {"node", ColumnType::kText, "Name.", &LayerNodeRow::node},
         {"op", ColumnType::kText, "Normalised target.", &LayerNodeRow::op},
         {"layer", ColumnType::kText,
          "Layer (STACK:N outside of the main stack), shared or "
          "epilogue.",
          &LayerNodeRow::layer},
         {"group", ColumnType::kText, "Group; empty outside layers.",
          &LayerNodeRow::group},
         {"sub_group", ColumnType::kText, "Part of the group.",
          &LayerNodeRow::sub_group}}};
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
  return TablesWriter(graph, layers, groups, kinds).Run();
}

}  // namespace lamina::graph
