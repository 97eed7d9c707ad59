// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/form_kind.h"

#include <absl/container/flat_hash_set.h>
#include <string_view>

#include "base/text.h"

namespace lamina::fusion {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::NodeKind;

// Light nodes between a form and attention that still count as close.
constexpr int kNear = 3;

// Whether an op for which `is` holds is within a few nodes.
bool CloseTo(const Graph& graph, const ClassedOps& ops,
             const std::vector<NodeId>& nodes, bool ahead,
             bool (*is)(std::string_view), int hops) {
  std::vector<std::pair<NodeId, int>> open;
  for (const NodeId id : nodes) open.emplace_back(id, 0);
  absl::flat_hash_set<NodeId> seen(nodes.begin(), nodes.end());
  while (!open.empty()) {
    const auto [id, depth] = open.back();
    open.pop_back();
    for (const NodeId next : ahead ? graph.Users(id) : graph.Inputs(id)) {
      if (graph[next].kind != NodeKind::kOp || !seen.insert(next).second)
        continue;
      if (is(graph.op(next))) return true;
      if (ops.IsView(next)) {
        open.emplace_back(next, depth);
      } else if (ops.IsLight(next) && depth + 1 < hops) {
        open.emplace_back(next, depth + 1);
      }
    }
  }
  return false;
}

}  // namespace

FormKind KindOfForm(const Graph& graph, const ClassedOps& ops,
                    const std::vector<NodeId>& nodes) {
  bool norm = false;
  bool copies = true;
  for (const NodeId id : nodes) {
    const std::string_view op = graph.op(id);
    norm |= Contains(op, "rsqrt") || Contains(op, "norm");
    if (ops.IsLight(id)) {
      copies &= Contains(op, "aten.to") || Contains(op, "_to_copy") ||
                Contains(op, "contiguous") || Contains(op, "clone");
    }
  }
  if (copies) return FormKind::kCopies;
  const auto collective = [](std::string_view op) {
    return Contains(op, "all_reduce") || Contains(op, "allreduce") ||
           Contains(op, "all_gather") || Contains(op, "reduce_scatter");
  };
  if (CloseTo(graph, ops, nodes, false, collective, 1))
    return FormKind::kCollective;
  if (norm) return FormKind::kNorm;
  const auto attention = [](std::string_view op) {
    return Contains(op, "attention") || Contains(op, "sdpa") ||
           Contains(op, "rope");
  };
  if (CloseTo(graph, ops, nodes, true, attention, kNear) ||
      CloseTo(graph, ops, nodes, false, attention, kNear))
    return FormKind::kAttention;
  const auto heavy = [](std::string_view op) {
    return Contains(op, "linear") || Contains(op, "gemm") ||
           Contains(op, "moe") || Contains(op, "aten.mm") ||
           Contains(op, "matmul");
  };
  if (CloseTo(graph, ops, nodes, false, heavy, 1)) return FormKind::kEpilogue;
  if (CloseTo(graph, ops, nodes, true, heavy, 1)) return FormKind::kPrologue;
  return FormKind::kElementWise;
}

std::string_view Name(FormKind kind) {
  switch (kind) {
    case FormKind::kElementWise:
      return "element-wise chain";
    case FormKind::kNorm:
      return "norm chain";
    case FormKind::kEpilogue:
      return "epilogue";
    case FormKind::kPrologue:
      return "prologue";
    case FormKind::kAttention:
      return "attention-adjacent";
    case FormKind::kCollective:
      return "collective + norm";
    case FormKind::kCopies:
      return "redundant casts and copies";
    case FormKind::kSiblings:
      return "sibling GEMMs";
  }
  return {};
}

}  // namespace lamina::fusion
