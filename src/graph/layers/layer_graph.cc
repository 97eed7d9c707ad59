// SPDX-License-Identifier: Apache-2.0
#include "graph/layers/layer_graph.h"

#include <absl/container/flat_hash_set.h>

#include "base/decimal.h"

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

}  // namespace lamina::graph
