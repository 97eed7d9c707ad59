// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/canonical.h"

#include <absl/container/flat_hash_map.h>

#include "graph/types.h"

namespace lamina::fusion {
namespace {

using graph::Graph;
using graph::NodeId;

// Lists of a hundred experts need not be read to the end.
constexpr size_t kShownItems = 8;

class Writer {
 public:
  Writer(const Graph& graph, bool readable)
      : graph_(graph), readable_(readable) {}

  std::string Run(const std::vector<NodeId>& nodes) {
    for (const NodeId id : nodes)
      names_.try_emplace(id, "%n" + std::to_string(names_.size()));
    for (const NodeId id : nodes) AddNode(id);
    return std::move(out_);
  }

 private:
  void AddNode(NodeId id) {
    if (!out_.empty()) out_ += '\n';
    out_ += names_[id] + " = ";
    out_ += graph_.op(id);
    out_ += '(';
    bool first = true;
    for (const graph::OperandId operand : graph_.TopOperands(id)) {
      if (!first) out_ += ", ";
      first = false;
      AddOperand(operand);
    }
    out_ += ')';
    if (!readable_) AddResult(id);
  }

  void AddOperand(graph::OperandId id) {
    const graph::Operand& operand = graph_.operand(id);
    if (operand.IsValue()) {
      out_ += NameOf(operand.value());
      return;
    }
    if (operand.extent() == 0) {
      out_ += operand.text();
      return;
    }
    out_ += '[';
    size_t items = 0;
    const uint32_t end = id.value + operand.extent();
    for (uint32_t i = id.value + 1; i <= end;
         i += 1 + graph_.operand(graph::OperandId(i)).extent()) {
      if (items > 0) out_ += ", ";
      if (readable_ && items == kShownItems) {
        out_ += "...";
        break;
      }
      ++items;
      AddOperand(graph::OperandId(i));
    }
    out_ += ']';
  }

  // Values from outside by first use; weights and sizes apart.
  const std::string& NameOf(NodeId id) {
    const auto [found, fresh] = names_.try_emplace(id);
    if (fresh) {
      const graph::Node& node = graph_[id];
      const bool weight = node.kind == graph::NodeKind::kWeight;
      found->second = (weight ? "!w" : "%x") +
                      std::to_string(weight ? weights_++ : values_++);
    }
    return found->second;
  }

  // Ranks and dtypes, not sizes: heads of Q and of K are alike.
  void AddResult(NodeId id) {
    const graph::ResultText result = graph::SplitResult(graph_[id].result);
    out_ += " : ";
    const auto dims = graph::SplitShape(result.shape);
    out_ += dims ? std::to_string(dims->size()) : "?";
    out_ += ' ';
    out_ += result.dtype;
  }

  const Graph& graph_;
  const bool readable_;
  std::string out_;
  absl::flat_hash_map<NodeId, std::string> names_;
  size_t values_ = 0;
  size_t weights_ = 0;
};

}  // namespace

std::string CanonicalForm(const Graph& graph,
                          const std::vector<NodeId>& nodes) {
  return Writer(graph, false).Run(nodes);
}

std::string FormText(const Graph& graph, const std::vector<NodeId>& nodes) {
  return Writer(graph, true).Run(nodes);
}

}  // namespace lamina::fusion
