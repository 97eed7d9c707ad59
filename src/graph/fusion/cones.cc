// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/cones.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>

namespace lamina::fusion {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::NodeKind;

constexpr uint32_t kNoCone = 0xffffffff;
// Values that nearly every node reads (cos and sin) join nothing by
// themselves.
constexpr size_t kMaxSiblings = 8;

class Finder {
 public:
  Finder(const Graph& graph, const ClassedOps& ops)
      : graph_(graph), ops_(ops), cone_of_(graph.size(), kNoCone) {}

  Cones Run() {
    Part();
    Link();
    return std::move(out_);
  }

 private:
  // From the last node to the first: a node whose users all lie in one cone
  // belongs to it; another light node is a root.
  void Part() {
    for (auto it = ops_.order().rbegin(); it != ops_.order().rend(); ++it) {
      const NodeId id = *it;
      if (!ops_.IsLight(id) && !ops_.IsView(id)) continue;
      uint32_t cone = kNoCone;
      bool one = graph_.UseCount(id) > 0;
      graph_.ForEachUse(id, [&](graph::OperandId, const graph::Operand& use) {
        const uint32_t user = cone_of_[use.owner().value];
        one &= user != kNoCone && (cone == kNoCone || cone == user);
        cone = user;
      });
      if (!one) {
        if (!ops_.IsLight(id)) continue;
        cone = static_cast<uint32_t>(out_.list.size());
        out_.list.emplace_back();
        out_.list.back().root = id;
      }
      cone_of_[id.value] = cone;
      out_.list[cone].nodes.push_back(id);
      out_.list[cone].light += ops_.IsLight(id);
    }
    for (Cone& cone : out_.list)
      std::reverse(cone.nodes.begin(), cone.nodes.end());
  }

  // Cones that feed each other, or read one value that few read.
  void Link() {
    out_.links.resize(out_.list.size());
    const auto link = [&](uint32_t a, uint32_t b) {
      if (a == b) return;
      out_.links[a].insert(b);
      out_.links[b].insert(a);
    };
    std::vector<NodeId> inputs;
    for (const NodeId id : ops_.order()) {
      const uint32_t to = cone_of_[id.value];
      if (to == kNoCone) continue;
      graph_.Inputs(id, inputs);
      for (NodeId input : inputs) {
        // Through views that belong to no cone.
        for (int hops = 0;
             hops < 8 && graph_[input].kind == NodeKind::kOp &&
             ops_.IsView(input) && cone_of_[input.value] == kNoCone;
             ++hops) {
          std::set<uint32_t> siblings;
          for (const NodeId user : graph_.Users(input)) {
            if (cone_of_[user.value] != kNoCone)
              siblings.insert(cone_of_[user.value]);
          }
          if (siblings.size() <= kMaxSiblings) {
            for (const uint32_t sibling : siblings) link(to, sibling);
          }
          const std::vector<NodeId> above = graph_.Inputs(input);
          if (above.empty()) break;
          input = above[0];
        }
        if (cone_of_[input.value] != kNoCone) link(to, cone_of_[input.value]);
      }
    }
  }

  const Graph& graph_;
  const ClassedOps& ops_;
  std::vector<uint32_t> cone_of_;
  Cones out_;
};

}  // namespace

ClassedOps::ClassedOps(const Graph& graph, const OpTable& ops)
    : class_(graph.size(), OpClass::kOther) {
  // Few distinct ops: each is looked up once.
  absl::flat_hash_map<uint32_t, OpClass> known;
  for (const NodeId id : graph.nodes()) {
    if (graph[id].kind != NodeKind::kOp) continue;
    order_.push_back(id);
    const auto [found, fresh] = known.try_emplace(graph[id].op.value);
    if (fresh) found->second = ops.ClassOf(graph.op(id));
    class_[id.value] = found->second;
  }
}

Cones FindCones(const Graph& graph, const ClassedOps& ops) {
  return Finder(graph, ops).Run();
}

}  // namespace lamina::fusion
