// SPDX-License-Identifier: Apache-2.0
//
// lamina list: what the program knows.
#include <map>

#include "analysis/analyses.h"
#include "cli/commands.h"
#include "cli/list_rules.h"
#include "cost/device.h"
#include "ingest/ingest.h"
#include "sql/database.h"
#include "sql/table_def.h"
#include "table/columns.h"
#include "table/row_columns.h"
#include "table/units.h"

namespace lamina::cli {
namespace {

struct Options {
  std::string what;
  std::string unused;
  bool check = false;
  bool columns = false;
};

struct FormatRow {
  std::string_view format, files, gives, lacks;
};

Table Formats() {
  const RowColumns<FormatRow> columns{
      "formats",
      "Trace formats that are read.",
      {{"format", ColumnType::kText, "Name.", &FormatRow::format},
       {"files", ColumnType::kText, "What the files are.", &FormatRow::files},
       {"gives", ColumnType::kText, "What a report gets from it.",
        &FormatRow::gives},
       {"lacks", ColumnType::kText, "What no such file can tell.",
        &FormatRow::lacks, Shown::kHidden}}};
  Table table(columns.schema());
  for (const ingest::FormatInfo& format : ingest::Formats())
    columns.Add(table, {.format = format.name,
                        .files = format.doc,
                        .gives = format.gives,
                        .lacks = format.lacks});
  return table;
}

struct AnalysisRow {
  std::string_view analysis, table, column, meaning;
};

Table Analyses() {
  const RowColumns<AnalysisRow> columns{
      "analyses",
      "Tables of a report, with what they mean.",
      {{"analysis", ColumnType::kText, "Name.", &AnalysisRow::analysis},
       {"table", ColumnType::kText, "Table it makes.", &AnalysisRow::table},
       {"column", ColumnType::kText, "Column.", &AnalysisRow::column},
       {"meaning", ColumnType::kText, "One sentence.", &AnalysisRow::meaning}}};
  Table table(columns.schema());
  for (const analysis::AnalysisInfo& info : analysis::Analyses()) {
    for (const Schema& schema : info.schemas()) {
      columns.Add(table, {.analysis = info.name,
                          .table = schema.name,
                          .column = "",
                          .meaning = schema.doc});
      for (const Column& column : schema.columns)
        columns.Add(table, {.analysis = info.name,
                            .table = schema.name,
                            .column = column.name,
                            .meaning = column.doc});
    }
  }
  return table;
}

struct ColumnRow {
  std::string_view column, type, meaning;
  std::string unit;
  int64_t tables;
};

// The dictionary of columns.
Table ColumnNames() {
  const RowColumns<ColumnRow> columns{
      "columns",
      "Names of columns: each means the same and has one type in all tables.",
      {{"column", ColumnType::kText, "Name.", &ColumnRow::column},
       {"type", ColumnType::kText, "INTEGER, REAL or TEXT.", &ColumnRow::type},
       {"unit", ColumnType::kText, "Unit, where the name has one.",
        &ColumnRow::unit},
       {"tables", ColumnType::kInt, "Tables that have it.", &ColumnRow::tables},
       {"meaning", ColumnType::kText, "One sentence.", &ColumnRow::meaning}}};
  std::map<std::string_view, int64_t> tables;
  for (const sql::TableDef& table : sql::Tables()) {
    for (const sql::ColumnDef& column : table.columns) ++tables[column.name];
  }
  Table table(columns.schema());
  for (const ColumnWord& word : ColumnWords()) {
    columns.Add(table, {.column = word.name,
                        .type = word.type == ColumnType::kText   ? "TEXT"
                                : word.type == ColumnType::kReal ? "REAL"
                                                                 : "INTEGER",
                        .meaning = word.meaning,
                        .unit = UnitOfName(word.name),
                        .tables = tables[word.name]});
  }
  return table;
}

struct CostRow {
  std::string_view op, model, unit, sheet, parameters;
};

Result<Table> Costs(const Common& common) {
  LAMINA_ASSIGN(const auto models,
                cost::ModelSet::Load(rules::DataSet(common.asker.rules_dir)));
  const RowColumns<CostRow> columns{
      "costs",
      "Ops with a cost model.",
      {{"op", ColumnType::kText, "Exact name.", &CostRow::op},
       {"model", ColumnType::kText, "Its model.", &CostRow::model},
       {"unit", ColumnType::kText, "matrix, vector or none.", &CostRow::unit},
       {"sheet", ColumnType::kText,
        "Family sheet of the TraceLens layout; empty: lamina's own "
        "model.",
        &CostRow::sheet},
       {"parameters", ColumnType::kText, "What the model shows.",
        &CostRow::parameters}}};
  Table table(columns.schema());
  for (const std::string_view name : models->Ops()) {
    const cost::OpModel& op = *models->Find(name);
    std::string parameters;
    for (const std::string& parameter : op.model->parameters)
      parameters += (parameters.empty() ? "" : " ") + parameter;
    columns.Add(table, {.op = name,
                        .model = op.model->name,
                        .unit = op.unit,
                        .sheet = op.sheet,
                        .parameters = parameters});
  }
  return table;
}

struct DeviceRow {
  std::string_view device, title;
  double memory_gb, bytes_per_s;
  std::optional<double> matrix_bf16, matrix_fp16, matrix_fp8, matrix_tf32,
      vector_fp32;
  std::string_view source, note;
};

Result<Table> Devices(const Common& common) {
  LAMINA_ASSIGN(const auto devices,
                cost::DeviceSet::Load(rules::DataSet(common.asker.rules_dir)));
  const RowColumns<DeviceRow> columns{
      "devices",
      "Devices with their peaks.",
      {{"device", ColumnType::kText, "Name for --device.", &DeviceRow::device},
       {"title", ColumnType::kText, "Full name.", &DeviceRow::title},
       {"memory_gb", ColumnType::kReal, "Memory in GB.", &DeviceRow::memory_gb},
       {"bytes_per_s", ColumnType::kReal, "Memory bandwidth.",
        &DeviceRow::bytes_per_s, Shown::kCount},
       {"matrix_bf16", ColumnType::kReal, "FLOP/s.", &DeviceRow::matrix_bf16,
        Shown::kCount},
       {"matrix_fp16", ColumnType::kReal, "FLOP/s.", &DeviceRow::matrix_fp16,
        Shown::kCount},
       {"matrix_fp8", ColumnType::kReal, "FLOP/s.", &DeviceRow::matrix_fp8,
        Shown::kCount},
       {"matrix_tf32", ColumnType::kReal, "FLOP/s.", &DeviceRow::matrix_tf32,
        Shown::kHidden},
       {"vector_fp32", ColumnType::kReal, "FLOP/s.", &DeviceRow::vector_fp32,
        Shown::kCount},
       {"source", ColumnType::kText, "Where the numbers are from.",
        &DeviceRow::source, Shown::kHidden},
       {"note", ColumnType::kText, "What to know about them.", &DeviceRow::note,
        Shown::kHidden}}};
  Table table(columns.schema());
  for (const cost::Device& d : devices->devices()) {
    columns.Add(table, {.device = d.name,
                        .title = d.title,
                        .memory_gb = d.memory_gb,
                        .bytes_per_s = d.bytes_per_s,
                        .matrix_bf16 = d.Peak("matrix_bf16"),
                        .matrix_fp16 = d.Peak("matrix_fp16"),
                        .matrix_fp8 = d.Peak("matrix_fp8"),
                        .matrix_tf32 = d.Peak("matrix_tf32"),
                        .vector_fp32 = d.Peak("vector_fp32"),
                        .source = d.source,
                        .note = d.note});
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
  } else if (options.what == "columns") {
    document.result.tables.push_back(ColumnNames());
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
  if (common.asker.top == 0) common.asker.top = 100000;
  LAMINA_TRY(Write(document, common));
  return status;
}

Run Add(questions::Description& args, Common& common) {
  auto options = std::make_shared<Options>();
  args.Add("what", options->what,
           "formats, analyses, tables, columns, functions, rules, costs or "
           "devices")
      .Required()
      .OneOf({"formats", "analyses", "tables", "columns", "functions", "rules",
              "costs", "devices"});
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
  return OwnCommand(
      "list",
      "Formats, analyses, tables, rules, costs and devices that lamina knows",
      "lamina list formats", &Add);
}

}  // namespace lamina::cli
