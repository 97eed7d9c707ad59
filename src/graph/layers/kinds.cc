// SPDX-License-Identifier: Apache-2.0
#include "graph/layers/kinds.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <map>

#include "base/string_pool.h"

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

}  // namespace lamina::graph
