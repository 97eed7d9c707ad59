// SPDX-License-Identifier: Apache-2.0

#include "graph/layers/layer_graph.h"

#include <absl/container/flat_hash_set.h>
#include <cmath>
#include <fmt/format.h>

#include "base/counted.h"
#include "base/decimal.h"
#include "base/json/writer.h"
#include "table/row_columns.h"

namespace lamina::graph {

namespace {

class Cutter {
 public:
  Cutter(const Graph& graph, const Layers& layers, Place place,
         const std::vector<Group>& groups, const GroupRules& rules)
      : graph_(graph),
        layers_(layers),
        place_(place),
        groups_(groups),
        rules_(rules) {}

  LayerGraph Run(bool extended) {
    out_.section = graph_.name();
    if (place_ == kShared || place_ == kEpilogue) {
      out_.part = layers_.NameOf(place_);
      for (const NodeId id :
           place_ == kShared ? layers_.shared : layers_.epilogue)
        Add(id, false);
      return std::move(out_);
    }
    const Layer& layer = layers_.layers[static_cast<size_t>(place_)];
    out_.index = layer.index;
    out_.of = layers_.stacks[layer.stack].count;
    if (static_cast<int>(layer.stack) != layers_.main_stack)
      out_.stack = layers_.stacks[layer.stack].name;
    for (const NodeId id : layer.nodes) Add(id, false);
    if (extended) {
      for (const Boundary& boundary : layers_.boundaries) {
        if (boundary.from == place_) Add(boundary.node, true);
      }
    }
    return std::move(out_);
  }

 private:
  void Add(NodeId id, bool boundary) {
    const Node& node = graph_[id];
    const ResultText result = SplitResult(node.result);
    LayerNode out;
    out.id = node.name;
    out.target = node.target;
    out.op = graph_.op(id);
    out.shape = result.shape;
    out.dtype = result.dtype;
    out.group = boundary ? "norm" : groups_[id.value].name;
    out.sub_group = groups_[id.value].sub;
    out.boundary = boundary;
    out.ranks = RanksOf(id);
    graph_.Inputs(id, inputs_);
    for (const NodeId input : inputs_) {
      const Node& value = graph_[input];
      if (value.kind == NodeKind::kWeight && !layers_.IsSharedBuffer(input)) {
        const ResultText type = SplitResult(value.result);
        out.weights.push_back(
            {std::string(value.name),
             value.result.empty() ? "?" : std::string(type.shape),
             value.result.empty() ? "unknown" : std::string(type.dtype)});
        continue;
      }
      out.inputs.emplace_back(value.name);
      // What no op makes stands in no layer.
      const bool outside =
          layers_.PlaceOf(input) != place_ || value.kind != NodeKind::kOp;
      if (outside && seen_.insert(input).second) AddExternal(input);
    }
    out_.nodes.push_back(std::move(out));
  }

  int64_t RanksOf(NodeId id) const {
    // Compilers share the name of an op, not the order of its operands.
    int rule = rules_.collective_ranks.Find(graph_[id].target);
    if (rule == rules::PatternTable::kNone)
      rule = rules_.collective_ranks.Find(graph_.op(id));
    if (rule == rules::PatternTable::kNone) return 0;
    const auto at = ParseInt(rules_.collective_ranks.rule(rule).value);
    const auto operands = graph_.TopOperands(id);
    if (!at || *at < 0 || static_cast<size_t>(*at) >= operands.size()) return 0;
    const auto ranks =
        ParseInt(graph_.operand(operands[static_cast<size_t>(*at)]).text());
    // More than any machine has is a number of something else.
    constexpr int64_t kMostRanks = int64_t{1} << 20;
    return ranks && *ranks > 0 && *ranks <= kMostRanks ? *ranks : 0;
  }

  void AddExternal(NodeId id) {
    const Node& node = graph_[id];
    const ResultText result = SplitResult(node.result);
    out_.externals.push_back(
        {std::string(node.name), LabelOf(id),
         node.result.empty() ? "?" : std::string(result.shape)});
  }

  bool IsResidual(NodeId id) const {
    const std::string_view op = graph_.op(id);
    if (IsAddition(op) || Matches(rules_.residual_norms, op)) return true;
    const Graph::Element element = graph_.ElementOf(id);
    return element.value.valid() &&
           Matches(rules_.residual_norms, graph_.op(element.value));
  }

  std::string LabelOf(NodeId id) const {
    const Node& node = graph_[id];
    switch (node.kind) {
      case NodeKind::kWeight:
        return Matches(rules_.rope_buffers, node.name) ? "RoPE cache"
                                                       : "Buffer";
      case NodeKind::kPlaceholder:
        return IsCacheName(node.name) ? "KV cache" : "Model input";
      default:
        break;
    }
    const Place at = layers_.PlaceOf(id);
    if (at != kShared) {
      return (at == kEpilogue ? "Epilogue" : "Layer " + layers_.NameOf(at)) +
             (IsResidual(id) ? " residual output" : " output");
    }
    return graph_.op(id).find("embedding") != std::string_view::npos
               ? "Token embedding"
               : "Shared value";
  }

  // "kv_cache", "kv_cache_5"
  static bool IsCacheName(std::string_view name) {
    const size_t end = name.find_last_not_of("0123456789");
    if (end != std::string_view::npos && end + 1 < name.size() &&
        name[end] == '_')
      name = name.substr(0, end);
    return name.ends_with("cache");
  }

  const Graph& graph_;
  const Layers& layers_;
  Place place_;
  const std::vector<Group>& groups_;
  const GroupRules& rules_;
  LayerGraph out_;
  absl::flat_hash_set<NodeId> seen_;
  std::vector<NodeId> inputs_;
};

}  // namespace

std::string_view FitName(KernelFit fit) {
  constexpr std::string_view kNames[] = {"none", "ambiguous", "likely", "sure",
                                         "exact"};
  return kNames[static_cast<size_t>(fit)];
}

LayerGraph CutLayer(const Graph& graph, const Layers& layers, Place place,
                    const std::vector<Group>& groups, const GroupRules& rules,
                    bool extended) {
  return Cutter(graph, layers, place, groups, rules).Run(extended);
}

void NameKind(LayerGraph& layer, const Layers& layers, const Kinds& kinds,
              Place place) {
  if (place < 0 || static_cast<size_t>(place) >= kinds.of_layer.size()) return;
  const uint32_t kind = kinds.of_layer[static_cast<size_t>(place)];
  layer.kind = KindName(kind);
  layer.kind_layers = LayersOf(kinds.kinds[kind], layers);
}

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

// The file of a layer. Other programs read it, so its keys and their order are
// fixed; anything more goes below "lamina".

namespace {

using json::Writer;
constexpr auto kEach = Writer::Lines::kEach;

// Whether kernels are said to be of their nodes.
bool Claims(const LayerGraph& layer) {
  return !layer.trace || layer.trace->claimed;
}

void WriteNode(Writer& w, const LayerNode& node, bool claimed) {
  w.Object(kEach);
  w.Text("id", node.id);
  w.Text("op", node.target);
  w.Text("shape", node.shape);
  w.Text("dtype", node.dtype);
  w.Text("group", node.group);
  if (!node.sub_group.empty()) w.Text("sub_group", node.sub_group);
  w.Array("inputs", kEach);
  for (const std::string& input : node.inputs) w.Text(input);
  w.Close();
  w.Array("weight_inputs", kEach);
  for (const LayerWeight& weight : node.weights) {
    w.Object(kEach);
    w.Text("name", weight.name);
    w.Text("shape", weight.shape);
    w.Text("dtype", weight.dtype);
    w.Close();
  }
  w.Close();
  if (claimed && !node.kernels.empty()) {
    w.Array("trace_kernels", kEach);
    for (const LayerKernel& kernel : node.kernels) {
      w.Object(kEach);
      w.Text("kernel", kernel.name);
      w.Real("duration_us", kernel.duration_ns / 1000);
      w.Close();
    }
    w.Close();
  }
  w.Close();
}

void WriteEdges(Writer& w, const LayerGraph& layer) {
  w.Array("edges", kEach);
  for (const LayerNode& node : layer.nodes) {
    if (node.boundary) continue;
    for (const std::string& input : node.inputs) {
      w.Object(kEach);
      w.Text("from", input);
      w.Text("to", node.id);
      w.Close();
    }
  }
  w.Close();
}

// What the published form has no place for.
void WriteExtension(Writer& w, const LayerGraph& layer) {
  w.Object("lamina", kEach);
  if (!layer.stack.empty()) w.Text("stack", layer.stack);
  w.Object("normalized_ops", kEach);
  for (const LayerNode& node : layer.nodes) w.Text(node.id, node.op);
  w.Close();
  w.Array("boundary_nodes", kEach);
  for (const LayerNode& node : layer.nodes) {
    if (node.boundary) WriteNode(w, node, Claims(layer));
  }
  w.Close();
  w.Array("kernels", kEach);
  for (const LayerNode& node : layer.nodes) {
    if (!Claims(layer)) break;
    for (const LayerKernel& kernel : node.kernels) {
      w.Object(kEach);
      w.Text("node", node.id);
      w.Text("full_name", kernel.full_name);
      w.Real("p95_us", (kernel.p95_ns ? static_cast<double>(*kernel.p95_ns)
                                      : kernel.duration_ns) /
                           1000);
      w.Text("confidence", FitName(kernel.fit));
      w.Close();
    }
  }
  w.Close();
  w.Close();
}

}  // namespace

std::string LayerJson(const LayerGraph& layer, bool extended) {
  std::string out;
  Writer w(out, Writer::Spaces::kAfter, 1);
  w.Object(kEach);
  if (layer.part.empty())
    w.Int("layer", layer.index);
  else
    w.Text("layer", layer.part);
  w.Text("source_file", layer.source_file);
  w.Array("nodes", kEach);
  for (const LayerNode& node : layer.nodes) {
    if (!node.boundary) WriteNode(w, node, Claims(layer));
  }
  w.Close();
  WriteEdges(w, layer);
  w.Array("external_inputs", kEach);
  for (const ExternalInput& input : layer.externals) {
    w.Object(kEach);
    w.Text("id", input.id);
    w.Text("label", input.label);
    w.Text("shape", input.shape);
    w.Close();
  }
  w.Close();
  if (layer.trace) {
    w.Object("trace_summary", kEach);
    w.Real("total_duration_us", layer.trace->total_ns / 1000);
    w.Int("kernel_count", layer.trace->kernels);
    w.Int("num_streams", layer.trace->streams);
    if (!layer.trace->warning.empty()) w.Text("warning", layer.trace->warning);
    w.Close();
  }
  if (extended) WriteExtension(w, layer);
  w.Close();
  return out + "\n";
}

}  // namespace lamina::graph
