// SPDX-License-Identifier: Apache-2.0
//
// lamina graph census: which known fusions a dump holds or nearly holds.
#include "graph/fusion/census.h"

#include <algorithm>
#include <filesystem>

#include "graph/atlas/atlas.h"
#include "questions/bodies.h"
#include "questions/graph/graph_input.h"
#include "questions/graph/rule_input.h"
#include "table/row_columns.h"

namespace lamina::questions {
namespace {

struct GraphCensusOptions {
  std::string input;
  std::vector<std::string> rules;
  std::string log;
  std::string section;
  graph::ParseOptions parse;
  bool explain = false;
};

struct RuleRow {
  std::string_view rule, stage, default_, title;
  std::string guards;
  std::string_view saves, limits;
  std::string file, pattern, leaves;
};

// What a rule looks for and under which conditions.
Table Explain(const graph::RuleSet& set,
              const std::vector<std::string>& names) {
  const RowColumns<RuleRow> columns{
      "fusion_rules",
      "Rules of the census.",
      {{"rule", ColumnType::kText, "Name of the transform.", &RuleRow::rule},
       {"stage", ColumnType::kText, "Stage in which it runs.", &RuleRow::stage},
       {"default", ColumnType::kText, "Whether it runs unasked.",
        &RuleRow::default_},
       {"title", ColumnType::kText, "What it does.", &RuleRow::title},
       {"guards", ColumnType::kText, "Conditions.", &RuleRow::guards},
       {"saves", ColumnType::kText, "What it saves.", &RuleRow::saves},
       {"limits", ColumnType::kText, "What a dump does not show.",
        &RuleRow::limits},
       {"file", ColumnType::kText, "File and line of the rule.",
        &RuleRow::file},
       {"pattern", ColumnType::kText,
        "What it looks for; alternatives stand below each other.",
        &RuleRow::pattern, Shown::kHidden},
       {"leaves", ColumnType::kText, "Ops that a replacement leaves behind.",
        &RuleRow::leaves, Shown::kHidden}}};
  Table table(columns.schema());
  for (const graph::Rule& rule : set.rules) {
    if (!names.empty() &&
        std::find(names.begin(), names.end(), rule.name) == names.end())
      continue;
    std::string guards;
    for (const graph::Guard& guard : rule.guards) {
      guards += (guards.empty() ? "" : "; ") + guard.text;
      if (guard.visible != graph::Guard::Visible::kDump)
        guards += " (" + std::string(graph::Name(guard.visible)) + ")";
    }
    std::string pattern;
    for (const graph::Alternative& alternative : rule.alternatives)
      pattern += (pattern.empty() ? "" : "\n") + alternative.text;
    std::string leaves;
    for (const std::string& op : rule.produces)
      leaves += (leaves.empty() ? "" : ", ") + op;
    columns.Add(table, {.rule = rule.name,
                        .stage = rule.stage,
                        .default_ = graph::Name(rule.default_state),
                        .title = rule.title,
                        .guards = guards,
                        .saves = rule.saves,
                        .limits = rule.limits,
                        .file = rule.file + ":" + std::to_string(rule.line),
                        .pattern = pattern,
                        .leaves = leaves});
  }
  return table;
}

// Rules with a match or a near miss.
Table Found(const Table& table) {
  Table out(table.schema());
  const size_t matches = table.schema().IndexOf("matches");
  const size_t misses = table.schema().IndexOf("near_misses");
  for (size_t row = 0; row < table.rows(); ++row) {
    if (table.Int(row, matches) == 0 && table.Int(row, misses) == 0) continue;
    std::vector<Value> cells;
    for (size_t column = 0; column < table.columns(); ++column)
      cells.push_back(table.At(row, column));
    out.AddRow(cells);
  }
  return out;
}

// The log of --log, or transform.log in the folder of the dumps.
Result<std::optional<graph::TransformLog>> FindLog(
    const GraphCensusOptions& options) {
  namespace fs = std::filesystem;
  std::string path = options.log;
  if (path.empty()) {
    std::error_code error;
    if (!fs::is_directory(options.input, error)) return std::nullopt;
    const fs::path beside = fs::path(options.input) / "transform.log";
    if (!fs::exists(beside, error)) return std::nullopt;
    path = beside.string();
  }
  LAMINA_ASSIGN(graph::TransformLog log, graph::ReadTransformLog(path));
  return log;
}

Result<Answer> RunCensus(const GraphCensusOptions& options, Asker& asker) {
  LAMINA_ASSIGN(const RuleInput rules, OpenRules(asker));
  for (const std::string& name : options.rules) {
    if (rules.set.Find(name) == nullptr) return Fail(UnknownRule(rules, name));
  }
  Document document;
  document.command = "graph census";
  document.inputs = {options.input};
  if (options.explain) {
    document.result.tables.push_back(Explain(rules.set, options.rules));
    return Answer(std::move(document));
  }
  fusion::CensusOptions census;
  census.rules = options.rules;
  census.groups = rules.groups;
  LAMINA_ASSIGN(const auto log, FindLog(options));
  std::vector<graph::DumpFile> files;
  std::error_code error;
  if (std::filesystem::is_directory(options.input, error)) {
    LAMINA_ASSIGN(files, graph::ListDumps(options.input));
  } else {
    graph::DumpFile file;
    graph::ParseDumpName(options.input, file);
    files.push_back(file);
  }
  const bool page = asker.for_page() || !asker.only.empty();
  LAMINA_ASSIGN(const auto launches, graph::LaunchTable::Load(rules.data));
  graph::Atlas atlas(*rules.groups, *launches);
  std::vector<fusion::FileCensus> counted;
  size_t without = 0;  // dumps without the section
  for (const graph::DumpFile& file : files) {
    LAMINA_ASSIGN(graph::Dump dump,
                  ReadGraphDump(file.path, options.parse, asker));
    if (!options.section.empty()) {
      // Not every dump of a run has the section that was asked for.
      const auto chosen = graph::ChooseGraph(dump, options.section);
      if (!chosen) {
        if (++without == files.size()) return Fail(chosen.error());
        continue;
      }
      std::erase_if(dump.graphs, [&](const graph::Graph& one) {
        return one.name() != options.section;
      });
    }
    const ScopedStage stage(&asker.times, "match");
    counted.push_back(
        fusion::TakeCensus(file, dump, rules.set, census,
                           counted.empty() ? nullptr : &counted.back()));
    for (const graph::Graph& graph : dump.graphs) {
      if (page)
        atlas.Add({file.name, dump.header.stage, dump.header.transform}, graph);
    }
  }
  document.result =
      fusion::CensusTables(counted, rules.set, log ? &*log : nullptr);
  if (page) {
    document.result.Append(std::move(atlas).Tables());
    document.result.tables.push_back(Explain(rules.set, options.rules));
  }
  const bool nothing = std::all_of(
      document.result.tables.begin(), document.result.tables.end(),
      [](const Table& one) {
        return one.name() != "census_rules" || Found(one).rows() == 0;
      });
  if (nothing && document.result.notes.empty()) {
    document.result.notes.push_back(
        MakeNote(Severity::kInfo, "no_rule_matches",
                 "No known fusion matches, nearly matches or is done already "
                 "(⟨explain⟩ lists the rules)."));
  }
  if (asker.for_screen()) {
    for (Table& table : document.result.tables) {
      if (table.name() == "census_rules") table = Found(table);
    }
    // Per layer and file by file is too much for a terminal.
    const bool folder = files.size() > 1;
    std::erase_if(document.result.tables, [&](const Table& table) {
      return table.rows() == 0 || table.name() == "census" ||
             table.name() == "matches" ||
             (folder && table.name() != "census_stages" &&
              options.rules.empty());
    });
  }
  return Answer(std::move(document));
}

}  // namespace

Body DescribeGraphCensus(Description& args, Asker& asker) {
  auto options = std::make_shared<GraphCensusOptions>();
  args.Add("dump", options->input, "Dump file or folder of dumps").Required();
  args.Add("--rule", options->rules, "Only these rules");
  args.Add("--section", options->section, "Only this GraphModule");
  AddDialectOption(args, options->parse.dialect);
  args.Add("--log", options->log,
           "Log of the run (default: transform.log of the folder)");
  args.Flag("--explain", options->explain,
            "List the rules with their conditions, and stop");
  return [options, &asker] { return RunCensus(*options, asker); };
}

}  // namespace lamina::questions
