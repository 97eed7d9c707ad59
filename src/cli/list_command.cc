// SPDX-License-Identifier: Apache-2.0
//
// lamina list: what the program knows.
#include "analysis/analyses.h"
#include "cli/commands.h"
#include "cli/list_rules.h"
#include "cost/device.h"
#include "ingest/ingest.h"
#include "sql/database.h"

namespace lamina::cli {
namespace {

struct Options {
  std::string what;
  std::string unused;
  bool check = false;
  bool columns = false;
};

Table Formats() {
  Table table({"formats",
               "Trace formats that are read.",
               {{"format", ColumnType::kText, "Name."},
                {"files", ColumnType::kText, "What the files are."},
                {"gives", ColumnType::kText, "What a report gets from it."},
                {"lacks", ColumnType::kText, "What no such file can tell.",
                 Shown::kHidden}}});
  for (const ingest::FormatInfo& format : ingest::Formats())
    table.Add(format.name, format.doc, format.gives, format.lacks);
  return table;
}

Table Analyses() {
  Table table({"analyses",
               "Tables of a report, with what they mean.",
               {{"analysis", ColumnType::kText, "Name."},
                {"table", ColumnType::kText, "Table it makes."},
                {"column", ColumnType::kText, "Column."},
                {"meaning", ColumnType::kText, "One sentence."}}});
  for (const analysis::AnalysisInfo& info : analysis::Analyses()) {
    for (const Schema& schema : info.schemas()) {
      table.Add(info.name, schema.name, "", schema.doc);
      for (const Column& column : schema.columns)
        table.Add(info.name, schema.name, column.name, column.doc);
    }
  }
  return table;
}

Result<Table> Costs(const Common& common) {
  LAMINA_ASSIGN(const auto models,
                cost::ModelSet::Load(rules::DataSet(common.rules_dir)));
  Table table({"costs",
               "Ops with a cost model.",
               {{"op", ColumnType::kText, "Exact name."},
                {"model", ColumnType::kText, "Its model."},
                {"unit", ColumnType::kText, "matrix, vector or none."},
                {"sheet", ColumnType::kText,
                 "Family sheet of the TraceLens layout; empty: lamina's own "
                 "model."},
                {"parameters", ColumnType::kText, "What the model shows."}}});
  for (const std::string_view name : models->Ops()) {
    const cost::OpModel& op = *models->Find(name);
    std::string parameters;
    for (const std::string& parameter : op.model->parameters)
      parameters += (parameters.empty() ? "" : " ") + parameter;
    table.Add(name, op.model->name, op.unit, op.sheet, parameters);
  }
  return table;
}

Result<Table> Devices(const Common& common) {
  LAMINA_ASSIGN(const auto devices,
                cost::DeviceSet::Load(rules::DataSet(common.rules_dir)));
  Table table(
      {"devices",
       "Devices with their peaks.",
       {{"device", ColumnType::kText, "Name for --device."},
        {"title", ColumnType::kText, "Full name."},
        {"memory_gb", ColumnType::kReal, "Memory in GB."},
        {"bytes_per_s", ColumnType::kReal, "Memory bandwidth.", Shown::kCount},
        {"matrix_bf16", ColumnType::kReal, "FLOP/s.", Shown::kCount},
        {"matrix_fp16", ColumnType::kReal, "FLOP/s.", Shown::kCount},
        {"matrix_fp8", ColumnType::kReal, "FLOP/s.", Shown::kCount},
        {"matrix_tf32", ColumnType::kReal, "FLOP/s.", Shown::kHidden},
        {"vector_fp32", ColumnType::kReal, "FLOP/s.", Shown::kCount},
        {"source", ColumnType::kText, "Where the numbers are from.",
         Shown::kHidden},
        {"note", ColumnType::kText, "What to know about them.",
         Shown::kHidden}}});
  for (const cost::Device& d : devices->devices()) {
    table.Add(d.name, d.title, d.memory_gb, d.bytes_per_s,
              d.Peak("matrix_bf16"), d.Peak("matrix_fp16"),
              d.Peak("matrix_fp8"), d.Peak("matrix_tf32"),
              d.Peak("vector_fp32"), d.source, d.note);
  }
  return table;
}

Result<int> RunList(const Options& options, Common& common) {
  if (options.what != "rules" && (options.check || !options.unused.empty()))
    return Fail(UsageError("--check and --unused are for rules",
                           "lamina list rules --check"));
  Document document;
  document.command = "list";
  int status = kFine;
  if (options.what == "formats") {
    document.result.tables.push_back(Formats());
  } else if (options.what == "analyses") {
    document.result.tables.push_back(Analyses());
  } else if (options.what == "tables") {
    document.result.tables.push_back(options.columns ? sql::ListColumns()
                                                     : sql::ListTables());
  } else if (options.what == "functions") {
    document.result.tables.push_back(sql::ListFunctions());
  } else if (options.check) {
    LAMINA_ASSIGN(Table problems, RuleProblems(common));
    if (problems.rows() > 0) status = kCheckFailed;
    document.result.tables.push_back(std::move(problems));
  } else {
    LAMINA_ASSIGN(Table table, options.what == "costs"     ? Costs(common)
                               : options.what == "devices" ? Devices(common)
                               : options.unused.empty()
                                   ? AllRules(common)
                                   : UnusedRules(common, options.unused));
    document.result.tables.push_back(std::move(table));
  }
  if (common.top == 0) common.top = 100000;
  LAMINA_TRY(Write(document, common));
  return status;
}

Run Add(Arguments& args, Common& common) {
  auto options = std::make_shared<Options>();
  args.Add("what", options->what,
           "formats, analyses, tables, functions, rules, costs or devices")
      .Required()
      .OneOf({"formats", "analyses", "tables", "functions", "rules", "costs",
              "devices"});
  args.Flag("--columns", options->columns,
            "With tables: their columns, with types and meaning");
  args.Add("--unused", options->unused,
           "With rules: only those that decide about no name in this "
           "trace")
      .ValueName("TRACE");
  args.Flag("--check", options->check,
            "With rules: checks every rule's examples against all rules; "
            "exit status 1 if one does not hold");
  common.AddTo(args);
  return [options, &common] { return RunList(*options, common); };
}

}  // namespace

CommandInfo ListCommand() {
  return {
      "list",
      "Formats, analyses, tables, rules, costs and devices that lamina knows",
      "lamina list formats", &Add};
}

}  // namespace lamina::cli
