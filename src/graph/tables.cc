// SPDX-License-Identifier: Apache-2.0
#include "graph/tables.h"

#include "base/decimal.h"
#include "graph/line_parser.h"
#include "graph/types.h"
#include "graph/verify.h"
#include "table/row_columns.h"

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

struct SectionRow {
  std::string_view section;
  size_t placeholders, ops, weights, edges, references_in_lists, ambiguous;
  bool incomplete;
};

struct OpRow {
  std::string_view section, op;
  size_t count;
};

struct NodeRow {
  std::string_view section;
  uint32_t line;
  std::string_view kind, name, op, target, qualified_name;
  std::string operands;
  std::string_view shape, dtype;
  std::optional<int64_t> bytes;
  size_t users;
  std::string_view element_of;
  bool ambiguous;
  std::string_view source, scope;
};

struct WeightRow {
  std::string_view section, name, shape, dtype;
  std::optional<int64_t> bytes;
  size_t users;
};

struct EdgeRow {
  std::string_view section, from, to;
  bool weight;
};

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
  const RowColumns<SectionRow> columns{
      "sections",
      "The graphs of the dump.",
      {{"section", ColumnType::kText, "Path of the GraphModule.",
        &SectionRow::section},
       {"placeholders", ColumnType::kInt, "Inputs of the graph.",
        &SectionRow::placeholders},
       {"ops", ColumnType::kInt, "Operations.", &SectionRow::ops},
       {"weights", ColumnType::kInt,
        "Names that are used and never defined: parameters and "
        "buffers.",
        &SectionRow::weights},
       {"edges", ColumnType::kInt, "Pairs of a value and a node that uses it.",
        &SectionRow::edges},
       {"references_in_lists", ColumnType::kInt,
        "References to values that stand as bare names inside of "
        "lists.",
        &SectionRow::references_in_lists},
       {"ambiguous", ColumnType::kInt, "Lines whose operands are a guess.",
        &SectionRow::ambiguous},
       {"incomplete", ColumnType::kBool,
        "Lines of the section could not be read.", &SectionRow::incomplete}}};
  Table table(columns.schema());
  for (const Graph* graph : graphs) {
    const Counts counts = CountOf(*graph);
    columns.Add(table, {.section = graph->name(),
                        .placeholders = counts.placeholders,
                        .ops = counts.ops,
                        .weights = counts.weights,
                        .edges = counts.edges,
                        .references_in_lists = counts.in_lists,
                        .ambiguous = counts.ambiguous,
                        .incomplete = graph->incomplete()});
  }
  return table;
}

Table OpCountTable(Graphs graphs) {
  const RowColumns<OpRow> columns{
      "ops",
      "Operations by target.",
      {{"section", ColumnType::kText, "Path of the GraphModule.",
        &OpRow::section},
       {"op", ColumnType::kText, "Normalised target.", &OpRow::op},
       {"count", ColumnType::kInt, "Nodes.", &OpRow::count}}};
  Table table(columns.schema());
  for (const Graph* graph : graphs) {
    for (const auto& [op, count] : OpCounts(*graph))
      columns.Add(table, {.section = graph->name(), .op = op, .count = count});
  }
  return table;
}

Table NodeTable(Graphs graphs, const Bindings& bindings) {
  const RowColumns<NodeRow> columns{
      "nodes",
      "The nodes in order.",
      {{"section", ColumnType::kText, "Path of the GraphModule.",
        &NodeRow::section},
       {"line", ColumnType::kInt, "Line in the file.", &NodeRow::line},
       {"kind", ColumnType::kText, "placeholder, op or output.",
        &NodeRow::kind},
       {"name", ColumnType::kText, "Name without %.", &NodeRow::name},
       {"op", ColumnType::kText, "Normalised target.", &NodeRow::op},
       {"target", ColumnType::kText, "Target as written.", &NodeRow::target},
       {"qualified_name", ColumnType::kText,
        "Full name of a Python function target.", &NodeRow::qualified_name},
       {"operands", ColumnType::kText, "Operands as written.",
        &NodeRow::operands},
       {"shape", ColumnType::kText, "Shape as written.", &NodeRow::shape},
       {"dtype", ColumnType::kText, "Element type as written.",
        &NodeRow::dtype},
       {"bytes", ColumnType::kInt,
        "Size of the result; empty when a symbol is unbound.", &NodeRow::bytes},
       {"users", ColumnType::kInt, "Nodes that use it.", &NodeRow::users},
       {"element_of", ColumnType::kText,
        "For getitem: the op with several results that it takes one of.",
        &NodeRow::element_of},
       {"ambiguous", ColumnType::kBool, "The operands are a guess.",
        &NodeRow::ambiguous},
       {"source", ColumnType::kText,
        "Source line that the dump names; empty: none.", &NodeRow::source},
       {"scope", ColumnType::kText,
        "Path of the module that the dump names; empty: none.",
        &NodeRow::scope}}};
  Table table(columns.schema());
  for (const Graph* graph : graphs) {
    for (const NodeId id : graph->nodes()) {
      const Node& node = (*graph)[id];
      const ResultText result = SplitResult(node.result);
      const Graph::Element element = graph->ElementOf(id);
      const std::string operands = OperandText(*graph, id);
      columns.Add(table, {.section = graph->name(),
                          .line = node.line,
                          .kind = KindName(node.kind),
                          .name = node.name,
                          .op = graph->op(id),
                          .target = node.target,
                          .qualified_name = QualifiedName(node.target),
                          .operands = operands,
                          .shape = result.shape,
                          .dtype = result.dtype,
                          .bytes = ResultBytes(node.result, bindings),
                          .users = graph->Users(id).size(),
                          .element_of = element.value.valid()
                                            ? (*graph)[element.value].name
                                            : std::string_view(),
                          .ambiguous = node.ambiguous,
                          .source = graph->OriginOf(id).source,
                          .scope = graph->OriginOf(id).scope});
    }
  }
  return table;
}

Table WeightTable(Graphs graphs, const Bindings& bindings) {
  const RowColumns<WeightRow> columns{
      "weights",
      "Parameters and buffers in order of first use.",
      {{"section", ColumnType::kText, "Path of the GraphModule.",
        &WeightRow::section},
       {"name", ColumnType::kText, "Name.", &WeightRow::name},
       {"shape", ColumnType::kText, "Shape at the first use.",
        &WeightRow::shape},
       {"dtype", ColumnType::kText, "Element type.", &WeightRow::dtype},
       {"bytes", ColumnType::kInt, "Size; empty when unknown.",
        &WeightRow::bytes},
       {"users", ColumnType::kInt, "Nodes that use it.", &WeightRow::users}}};
  Table table(columns.schema());
  for (const Graph* graph : graphs) {
    for (const NodeId id : graph->Weights()) {
      const Node& node = (*graph)[id];
      const ResultText result = SplitResult(node.result);
      columns.Add(table, {.section = graph->name(),
                          .name = node.name,
                          .shape = result.shape,
                          .dtype = result.dtype,
                          .bytes = ResultBytes(node.result, bindings),
                          .users = graph->Users(id).size()});
    }
  }
  return table;
}

Table EdgeTable(Graphs graphs) {
  const RowColumns<EdgeRow> columns{
      "edges",
      "Who uses what, in order of the users.",
      {{"section", ColumnType::kText, "Path of the GraphModule.",
        &EdgeRow::section},
       {"from", ColumnType::kText, "Value or weight.", &EdgeRow::from},
       {"to", ColumnType::kText, "User; empty: the output.", &EdgeRow::to},
       {"weight", ColumnType::kBool, "`from` is a weight.", &EdgeRow::weight}}};
  Table table(columns.schema());
  std::vector<NodeId> inputs;
  for (const Graph* graph : graphs) {
    for (const NodeId id : graph->nodes()) {
      graph->Inputs(id, inputs);
      for (const NodeId input : inputs) {
        columns.Add(table,
                    {.section = graph->name(),
                     .from = (*graph)[input].name,
                     .to = (*graph)[id].name,
                     .weight = (*graph)[input].kind == NodeKind::kWeight});
      }
    }
  }
  return table;
}

}  // namespace lamina::graph
