// SPDX-License-Identifier: Apache-2.0
//
// What an agent can read without a tool: the pages of skills/lamina, tables
// with their columns, and prompts.
#include <fmt/format.h>

#include "mcp/tools.h"
#include "sql/table_def.h"

namespace lamina::mcp {
namespace {

struct Guide {
  const char* file;  // below skills/
  const char* text;
};
constexpr Guide kGuides[] = {
#include "guides.inc"
};

// "lamina/workflows/ranks.md" is lamina://guide/ranks, what is below references
// lamina://docs/NAME.
Page PageOf(const Guide& guide) {
  const std::string_view file = guide.file;
  const size_t slash = file.rfind('/') + 1;
  std::string name(file.substr(slash, file.size() - slash - 3));
  if (name == "SKILL") name = "start";
  Page page;
  page.text = guide.text;
  // The first heading.
  const size_t head = page.text.find("# ");
  page.title =
      page.text.substr(head + 2, page.text.find('\n', head) - head - 2);
  page.uri = (file.find("/references/") != std::string_view::npos
                  ? "lamina://docs/"
                  : "lamina://guide/") +
             name;
  page.name = std::move(name);
  return page;
}

std::optional<std::string> TablePage(const std::string& name) {
  const sql::TableDef* const table = sql::FindTable(name);
  if (table == nullptr) return std::nullopt;
  std::string out = fmt::format(
      "# {}\n\n{}\n\nKind: {}. First use: {}.\n\n", table->name, table->doc,
      sql::TableKindName(table->kind), sql::CostName(table->cost));
  for (const sql::ColumnDef& column : table->columns) {
    if (column.hidden) continue;
    const std::string unit = column.unit();
    out += fmt::format("* `{}` ({}{}{}): {}\n", column.name,
                       sql::TypeName(column.type), unit.empty() ? "" : ", ",
                       unit, column.doc);
  }
  return out;
}

Param Required(const char* name, const char* doc) {
  return {.name = name, .doc = doc, .required = true};
}

std::vector<Prompt> Prompts() {
  constexpr const char* kFinish =
      "Finish with numbers with units, the calls that give them again, and the "
      "warnings of the answers. Say what cannot be known.\n";
  const Param trace = Required("trace", "Path or handle of a trace");
  return {
      {"why_slow",
       "Why is it slow?",
       "Where the time of a trace went and what to change",
       {trace},
       std::string("Why is {trace} slow, and what should change first?\n"
                   "Read lamina://guide/where-did-time-go. Call open_trace, "
                   "then report and diagnose; trace_health comes first. Quote "
                   "the claim of each worth.\n") +
           kFinish},
      {"what_changed",
       "What changed?",
       "Two traces compared by cause",
       {Required("a", "The trace before"), Required("b", "The trace after")},
       std::string("What changed from {a} to {b}?\nRead "
                   "lamina://guide/compare and call diff; its causes add up to "
                   "the difference.\n") +
           kFinish},
      {"straggler",
       "Which rank is late?",
       "A job of many ranks",
       {Required("dir", "Folder with a trace per rank")},
       std::string("Which rank of {dir} do the others wait for, and why?\nRead "
                   "lamina://guide/ranks and call ranks.\n") +
           kFinish},
      {"layer_picture",
       "One layer of a graph",
       "A layer of a graph dump with kernels on its nodes",
       {Required("dump", "Dump or folder of dumps"),
        Required("layer", "Number of the layer"),
        {.name = "trace", .doc = "Trace with replays of the graph"}},
       std::string("Show layer {layer} of {dump}.\n"
                   "Put the kernels of {trace} on its nodes.\n"
                   "Read lamina://guide/graph-layer; call graph_layers for odd "
                   "layers, then graph_layer. Cut nothing by eye.\n") +
           kFinish},
      {"fusion_candidates",
       "What could be fused?",
       "Fusions of a graph dump with kernels that exist",
       {Required("dump", "Dump or folder of dumps"),
        {.name = "tree", .doc = "Source checkout to look kernels up in"},
        {.name = "trace", .doc = "Trace with replays of the graph"}},
       std::string("What could be fused in {dump}?\n"
                   "Look kernels up in {tree}.\n"
                   "Bound the worth by {trace}.\n"
                   "Read lamina://guide/fusions; call graph_census, then "
                   "graph_candidates. Recommend no new kernel where none was "
                   "looked up.\n") +
           kFinish},
      {"write_query",
       "A question as SQL",
       "SQL that answers a question about a trace",
       {Required("question", "The question"), trace},
       std::string("Answer by SQL over {trace}: {question}\nRead "
                   "lamina://docs/sql; look tables and columns up with tables "
                   "before query.\n") +
           kFinish}};
}

}  // namespace

Library MakeLibrary() {
  Library library;
  for (const Guide& guide : kGuides) library.pages.push_back(PageOf(guide));
  PageFamily tables;
  tables.prefix = "lamina://table/";
  tables.argument = "name";
  tables.title = "A table of lamina query and its columns";
  tables.text = TablePage;
  tables.values = [] {
    std::vector<std::string> names;
    for (const sql::TableDef& table : sql::Tables())
      names.push_back(table.name);
    return names;
  };
  library.families.push_back(std::move(tables));
  library.prompts = Prompts();
  return library;
}

}  // namespace lamina::mcp
