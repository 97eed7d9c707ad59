// SPDX-License-Identifier: Apache-2.0
#include "graph/tables.h"

#include "base/decimal.h"
#include "graph/count.h"
#include "graph/line_parser.h"
#include "graph/target.h"

namespace lamina::graph {
namespace {

std::string_view KindName(NodeKind kind) {
  switch (kind) {
    case NodeKind::kPlaceholder:
      return "placeholder";
    case NodeKind::kOp:
      return "op";
    case NodeKind::kOutput:
      return "output";
    case NodeKind::kWeight:
      return "weight";
  }
  return "";
}

// Operands as they stand in the line, separated by ", ".
std::string OperandText(const Graph& graph, NodeId id) {
  std::string out;
  for (const OperandId operand : graph.TopOperands(id)) {
    if (!out.empty()) out += ", ";
    out += graph.operand(operand).text();
  }
  return out;
}

}  // namespace

std::optional<int64_t> ResultBytes(std::string_view result,
                                   const Bindings& bindings) {
  const ResultText parts = SplitResult(result);
  std::vector<std::string_view> shapes = {parts.shape};
  std::vector<std::string_view> dtypes = {parts.dtype};
  if (parts.tuple) {
    shapes = SplitTuple(parts.shape);
    dtypes = SplitTuple(parts.dtype);
  }
  if (shapes.size() != dtypes.size()) return std::nullopt;
  int64_t total = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto elements = Elements(shapes[i], bindings);
    const auto size = DTypeBytes(dtypes[i]);
    int64_t bytes = 0;
    if (!elements || !size ||
        __builtin_mul_overflow(*elements, *size, &bytes) ||
        __builtin_add_overflow(total, bytes, &total))
      return std::nullopt;
  }
  return total;
}

Table SectionTable(Graphs graphs) {
  Table table(
      {"sections",
       "The graphs of the dump.",
       {{"section", ColumnType::kText, "Path of the GraphModule."},
        {"placeholders", ColumnType::kInt, "Inputs of the graph."},
        {"ops", ColumnType::kInt, "Operations."},
        {"weights", ColumnType::kInt,
         "Names that are used and never defined: parameters and "
         "buffers."},
        {"edges", ColumnType::kInt,
         "Pairs of a value and a node that uses it."},
        {"references_in_lists", ColumnType::kInt,
         "References to values that stand as bare names inside of "
         "lists."},
        {"ambiguous", ColumnType::kInt, "Lines whose operands are a guess."},
        {"incomplete", ColumnType::kBool,
         "Lines of the section could not be read."}}});
  for (const Graph* graph : graphs) {
    const Counts counts = CountOf(*graph);
    table.Add(graph->name(), counts.placeholders, counts.ops, counts.weights,
              counts.edges, counts.in_lists, counts.ambiguous,
              graph->incomplete());
  }
  return table;
}

Table OpCountTable(Graphs graphs) {
  Table table({"ops",
               "Operations by target.",
               {{"section", ColumnType::kText, "Path of the GraphModule."},
                {"op", ColumnType::kText, "Normalised target."},
                {"count", ColumnType::kInt, "Nodes."}}});
  for (const Graph* graph : graphs) {
    for (const auto& [op, count] : OpCounts(*graph))
      table.Add(graph->name(), op, count);
  }
  return table;
}

Table NodeTable(Graphs graphs, const Bindings& bindings) {
  Table table(
      {"nodes",
       "The nodes in order.",
       {{"section", ColumnType::kText, "Path of the GraphModule."},
        {"line", ColumnType::kInt, "Line in the file."},
        {"kind", ColumnType::kText, "placeholder, op or output."},
        {"name", ColumnType::kText, "Name without %."},
        {"op", ColumnType::kText, "Normalised target."},
        {"target", ColumnType::kText, "Target as written."},
        {"qualified_name", ColumnType::kText,
         "Full name of a Python function target."},
        {"operands", ColumnType::kText, "Operands as written."},
        {"shape", ColumnType::kText, "Shape as written."},
        {"dtype", ColumnType::kText, "Element type as written."},
        {"bytes", ColumnType::kInt,
         "Size of the result; empty when a symbol is unbound."},
        {"users", ColumnType::kInt, "Nodes that use it."},
        {"element_of", ColumnType::kText,
         "For getitem: the op with several results that it takes one of."},
        {"ambiguous", ColumnType::kBool, "The operands are a guess."},
        {"source", ColumnType::kText,
         "Source line that the dump names; empty: none."},
        {"scope", ColumnType::kText,
         "Path of the module that the dump names; empty: none."}}});
  for (const Graph* graph : graphs) {
    for (const NodeId id : graph->nodes()) {
      const Node& node = (*graph)[id];
      const ResultText result = SplitResult(node.result);
      const Graph::Element element = graph->ElementOf(id);
      const std::string operands = OperandText(*graph, id);
      table.Add(graph->name(), node.line, KindName(node.kind), node.name,
                graph->op(id), node.target, QualifiedName(node.target),
                operands, result.shape, result.dtype,
                ResultBytes(node.result, bindings), graph->Users(id).size(),
                element.value.valid() ? (*graph)[element.value].name
                                      : std::string_view(),
                node.ambiguous, graph->OriginOf(id).source,
                graph->OriginOf(id).scope);
    }
  }
  return table;
}

Table WeightTable(Graphs graphs, const Bindings& bindings) {
  Table table({"weights",
               "Parameters and buffers in order of first use.",
               {{"section", ColumnType::kText, "Path of the GraphModule."},
                {"name", ColumnType::kText, "Name."},
                {"shape", ColumnType::kText, "Shape at the first use."},
                {"dtype", ColumnType::kText, "Element type."},
                {"bytes", ColumnType::kInt, "Size; empty when unknown."},
                {"users", ColumnType::kInt, "Nodes that use it."}}});
  for (const Graph* graph : graphs) {
    for (const NodeId id : graph->Weights()) {
      const Node& node = (*graph)[id];
      const ResultText result = SplitResult(node.result);
      table.Add(graph->name(), node.name, result.shape, result.dtype,
                ResultBytes(node.result, bindings), graph->Users(id).size());
    }
  }
  return table;
}

Table EdgeTable(Graphs graphs) {
  Table table({"edges",
               "Who uses what, in order of the users.",
               {{"section", ColumnType::kText, "Path of the GraphModule."},
                {"from", ColumnType::kText, "Value or weight."},
                {"to", ColumnType::kText, "User; empty: the output."},
                {"weight", ColumnType::kBool, "`from` is a weight."}}});
  std::vector<NodeId> inputs;
  for (const Graph* graph : graphs) {
    for (const NodeId id : graph->nodes()) {
      graph->Inputs(id, inputs);
      for (const NodeId input : inputs) {
        table.Add(graph->name(), (*graph)[input].name, (*graph)[id].name,
                  (*graph)[input].kind == NodeKind::kWeight);
      }
    }
  }
  return table;
}

}  // namespace lamina::graph
