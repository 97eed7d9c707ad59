// SPDX-License-Identifier: Apache-2.0
//
// lamina graph log-diff: transforms that lost matches between two runs.
#include "graph/fusion/log_diff.h"

#include "graph/fusion/census.h"
#include "questions/bodies.h"
#include "questions/graph/graph_input.h"
#include "questions/graph/rule_input.h"

namespace lamina::questions {
namespace {

struct GraphLogDiffOptions {
  std::string a;
  std::string b;
  std::vector<std::string> dumps;
  double max_drop = 0;
  int64_t layers = 0;
  bool all = false;
};

// Only what differs, unless asked for everything.
Table Changed(const Table& table) {
  Table out(table.schema());
  const size_t verdict = table.schema().IndexOf("verdict");
  for (size_t row = 0; row < table.rows(); ++row) {
    if (table.At(row, verdict).text() == "same") continue;
    std::vector<Value> cells;
    for (size_t column = 0; column < table.columns(); ++column)
      cells.push_back(table.At(row, column));
    out.AddRow(cells);
  }
  return out;
}

// The census of every dump of a folder.
Result<std::vector<fusion::FileCensus>> CountRun(const std::string& folder,
                                                 const RuleInput& rules,
                                                 Asker& asker) {
  LAMINA_ASSIGN(const auto files, graph::ListDumps(folder));
  fusion::CensusOptions census;
  census.groups = rules.groups;
  std::vector<fusion::FileCensus> out;
  for (const graph::DumpFile& file : files) {
    LAMINA_ASSIGN(const graph::Dump dump, ReadGraphDump(file.path, {}, asker));
    out.push_back(fusion::TakeCensus(file, dump, rules.set, census,
                                     out.empty() ? nullptr : &out.back()));
  }
  return out;
}

Result<Answer> RunLogDiff(const GraphLogDiffOptions& options, Asker& asker) {
  LAMINA_ASSIGN(const graph::TransformLog a,
                graph::ReadTransformLog(options.a));
  LAMINA_ASSIGN(const graph::TransformLog b,
                graph::ReadTransformLog(options.b));
  fusion::LogDiffOptions diff;
  diff.max_drop_percent = options.max_drop;
  diff.layers = options.layers;
  RuleInput rules;
  std::vector<std::vector<fusion::FileCensus>> runs;
  if (!options.dumps.empty()) {
    LAMINA_ASSIGN(rules, OpenRules(asker));
    for (const std::string& folder : options.dumps) {
      LAMINA_ASSIGN(auto run, CountRun(folder, rules, asker));
      runs.push_back(std::move(run));
    }
    diff.reason = [&](std::string_view transform) -> std::string {
      for (const graph::Rule& rule : rules.set.rules) {
        if (rule.name == transform)
          return fusion::WhyFewer(runs[0], runs[1], rule);
      }
      return {};
    };
  }
  fusion::LogDiff found = fusion::CompareLogs(a, b, diff);
  Document document;
  document.command = "graph log-diff";
  document.inputs = {options.a, options.b};
  document.result = std::move(found.result);
  if (asker.for_screen() && !options.all) {
    Table changed = Changed(document.result.tables[0]);
    document.result.tables.clear();
    if (changed.rows() > 0)
      document.result.tables.push_back(std::move(changed));
  }
  if (found.regressions == 0) {
    document.result.notes.push_back(MakeNote(Severity::kInfo, "no_regression",
                                             "No transform lost matches."));
  }
  Answer answer(std::move(document));
  answer.failed = found.regressions > 0;
  return answer;
}

}  // namespace

Body DescribeGraphLogDiff(Description& args, Asker& asker) {
  auto options = std::make_shared<GraphLogDiffOptions>();
  args.Add("log_a", options->a, "Log of the run to compare with").Required();
  args.Add("log_b", options->b, "Log of the new run").Required();
  args.Add("--max-drop", options->max_drop,
           "Percent of its matches that a transform may lose")
      .Within(0.0, 100.0)
      .ShowDefault();
  args.Add("--layers", options->layers,
           "Layers of the model (default: guessed from the first log)")
      .Whole(1, 1000000);
  args.Add("--dumps", options->dumps,
           "Folders of dumps of both runs: say which kind of near miss "
           "took the matches")
      .Count(2, 2);
  args.Flag("--all", options->all, "Also transforms that did not change");
  return [options, &asker] { return RunLogDiff(*options, asker); };
}

}  // namespace lamina::questions
