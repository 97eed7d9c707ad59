// SPDX-License-Identifier: Apache-2.0
#include "graph/pipeline/pipeline.h"

#include <algorithm>

#include "base/escape.h"
#include "graph/dialects/read.h"
#include "graph/print.h"
#include "table/row_columns.h"

namespace lamina::graph {
namespace {

// An op whose count differs between two steps.
struct OpChange {
  std::string_view op;
  size_t before = 0;
  size_t after = 0;

  std::string_view Kind() const {
    if (before == 0) return "new";
    if (after == 0) return "vanished";
    return after > before ? "more" : "fewer";
  }
};

std::vector<OpChange> Changes(const std::map<std::string, size_t>& before,
                              const std::map<std::string, size_t>& after) {
  std::vector<OpChange> out;
  auto a = before.begin();
  auto b = after.begin();
  while (a != before.end() || b != after.end()) {
    if (b == after.end() || (a != before.end() && a->first < b->first)) {
      out.push_back({a->first, a->second, 0});
      ++a;
    } else if (a == before.end() || b->first < a->first) {
      out.push_back({b->first, 0, b->second});
      ++b;
    } else {
      if (a->second != b->second)
        out.push_back({a->first, a->second, b->second});
      ++a;
      ++b;
    }
  }
  return out;
}

// "op x12, other", largest change first.
std::string Names(const std::vector<OpChange>& changes, std::string_view kind) {
  std::vector<std::pair<size_t, std::string_view>> rows;
  for (const OpChange& change : changes) {
    if (change.Kind() == kind)
      rows.emplace_back(std::max(change.before, change.after), change.op);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.first > b.first;
  });
  std::string out;
  for (const auto& [count, op] : rows) {
    if (!out.empty()) out += ", ";
    out += op;
    if (count > 1) out += " x" + std::to_string(count);
  }
  return out;
}

void CheckNumbers(const std::vector<DumpFile>& files, Pipeline& out) {
  for (size_t i = 1; i < files.size(); ++i) {
    if (files[i].number != files[i - 1].number) continue;
    out.notes.push_back(MakeNote(
        Severity::kWarning, "repeated_number",
        "Two files have the number " + std::to_string(files[i].number) +
            ": the folder mixes the dumps of several runs."));
    return;
  }
}

struct StepRow {
  int64_t number;
  std::string_view stage, transform, section;
  bool changed;
  size_t ops;
  std::optional<int64_t> ops_change;
  size_t placeholders, weights;
  std::string new_ops, vanished_ops;
};

struct OpRow {
  int64_t number;
  std::string_view transform, op, change;
  size_t before, after;
};

}  // namespace

Result<Pipeline> ReadPipeline(const std::vector<DumpFile>& files,
                              const std::string& section,
                              const ParseOptions& options) {
  Pipeline out;
  CheckNumbers(files, out);
  std::string last;
  for (const DumpFile& file : files) {
    Result<Dump> dump = ReadDump(file.path, options);
    if (!dump) {
      out.notes.push_back(
          MakeNote(Severity::kWarning, "unreadable", dump.error().ToString()));
      continue;
    }
    const std::string conflict = NameConflict(file, dump->header);
    if (!conflict.empty())
      out.notes.push_back(
          MakeNote(Severity::kWarning, "renamed", conflict + "."));
    const Result<const Graph*> graph = ChooseGraph(*dump, section);
    if (!graph) {
      out.notes.push_back(MakeNote(Severity::kInfo, "no_such_section",
                                   EscapeTerminal(file.name) +
                                       ": no graph is called '" +
                                       EscapeTerminal(section) + "'."));
      continue;
    }
    Step step;
    step.file = file;
    step.header = dump->header;
    if (step.header.transform.empty()) step.header.transform = file.transform;
    if (step.header.stage.empty()) step.header.stage = file.stage;
    step.section = (*graph)->name();
    step.counts = CountOf(**graph);
    for (const auto& [op, count] : OpCounts(**graph))
      step.ops.emplace(op, count);
    step.incomplete = (*graph)->incomplete();
    std::string text;
    AppendNormalized(text, **graph);
    text.erase(0, text.find('\n'));  // the name of the graph
    step.changed = out.steps.empty() || text != last;
    last = std::move(text);
    out.steps.push_back(std::move(step));
  }
  if (out.steps.empty()) {
    return Fail(InputError("", "none of the dumps can be used",
                           out.notes.empty() ? "" : out.notes[0].text));
  }
  return out;
}

ResultSet PipelineTables(const Pipeline& pipeline, bool all, bool all_ops) {
  const RowColumns<StepRow> step_columns{
      "pipeline",
      "The transforms of a run and what each changed.",
      {{"number", ColumnType::kInt, "Number of the file.", &StepRow::number},
       {"stage", ColumnType::kText, "Stage of the transform.", &StepRow::stage},
       {"transform", ColumnType::kText, "Transform, as the header says.",
        &StepRow::transform},
       {"section", ColumnType::kText, "Graph that is followed.",
        &StepRow::section, Shown::kHidden},
       {"changed", ColumnType::kBool,
        "The graph differs from the one before in more than names.",
        &StepRow::changed, all ? Shown::kPlain : Shown::kHidden},
       {"ops", ColumnType::kInt, "Operations behind the transform.",
        &StepRow::ops},
       {"ops_change", ColumnType::kInt, "Difference to the step before.",
        &StepRow::ops_change},
       {"placeholders", ColumnType::kInt, "Inputs of the graph.",
        &StepRow::placeholders, Shown::kHidden},
       {"weights", ColumnType::kInt, "Parameters and buffers in use.",
        &StepRow::weights},
       {"new_ops", ColumnType::kText,
        "Ops that the graph did not have, with their count.", &StepRow::new_ops,
        Shown::kHidden},
       {"vanished_ops", ColumnType::kText,
        "Ops that it has no longer, with their count before.",
        &StepRow::vanished_ops, Shown::kHidden}}};
  Table steps(step_columns.schema());
  const RowColumns<OpRow> op_columns{
      "pipeline_ops",
      all_ops ? "Every op whose count a transform changed."
              : "Ops that came or went.",
      {{"number", ColumnType::kInt, "Number of the file.", &OpRow::number},
       {"transform", ColumnType::kText, "Transform.", &OpRow::transform},
       {"op", ColumnType::kText, "Normalised target.", &OpRow::op},
       {"change", ColumnType::kText, "new, vanished, more or fewer.",
        &OpRow::change},
       {"before", ColumnType::kInt, "Nodes before.", &OpRow::before},
       {"after", ColumnType::kInt, "Nodes behind it.", &OpRow::after}}};
  Table ops(op_columns.schema());
  const Step* previous = nullptr;
  size_t unchanged = 0;
  for (const Step& step : pipeline.steps) {
    std::vector<OpChange> changes;
    if (previous != nullptr) changes = Changes(previous->ops, step.ops);
    unchanged += step.changed ? 0 : 1;
    if (step.changed || all) {
      std::optional<int64_t> change;
      if (previous != nullptr)
        change = static_cast<int64_t>(step.counts.ops) -
                 static_cast<int64_t>(previous->counts.ops);
      step_columns.Add(steps, {.number = step.file.number,
                               .stage = step.header.stage,
                               .transform = step.header.transform,
                               .section = step.section,
                               .changed = step.changed,
                               .ops = step.counts.ops,
                               .ops_change = change,
                               .placeholders = step.counts.placeholders,
                               .weights = step.counts.weights,
                               .new_ops = Names(changes, "new"),
                               .vanished_ops = Names(changes, "vanished")});
    }
    for (const OpChange& change : changes) {
      if (!all_ops && change.before > 0 && change.after > 0) continue;
      op_columns.Add(ops, {.number = step.file.number,
                           .transform = step.header.transform,
                           .op = change.op,
                           .change = change.Kind(),
                           .before = change.before,
                           .after = change.after});
    }
    previous = &step;
  }
  ResultSet out;
  out.tables.push_back(std::move(steps));
  out.tables.push_back(std::move(ops));
  out.notes = pipeline.notes;
  for (const Step& step : pipeline.steps) {
    if (!step.incomplete) continue;
    out.notes.push_back(MakeNote(
        Severity::kWarning, "incomplete",
        EscapeTerminal(step.file.name) +
            ": lines could not be read, counts may be low (⟨lamina⟩ graph "
            "print --check shows them)."));
  }
  if (unchanged > 0 && !all) {
    out.notes.push_back(MakeNote(
        Severity::kInfo, "unchanged",
        std::to_string(unchanged) + " of " +
            std::to_string(pipeline.steps.size()) +
            " files hold the graph of the file before; ⟨all⟩ shows them."));
  }
  return out;
}

}  // namespace lamina::graph
