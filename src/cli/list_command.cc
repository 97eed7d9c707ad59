// SPDX-License-Identifier: Apache-2.0
//
// lamina list rules: the name patterns, those that a trace does not need, and
// those whose examples do not hold.

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/analyses.h"
#include "analysis/host/counters.h"
#include "analysis/host/idle.h"
#include "analysis/layers/layers.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cost/device.h"
#include "cost/models.h"
#include "findings/source.h"
#include "graph/layers/rules.h"
#include "graph/passes/rule_file.h"
#include "ingest/ingest.h"
#include "lamina/table.h"
#include "memory/attribution.h"
#include "rules/catalog.h"
#include "rules/markers.h"
#include "rules/secrets.h"
#include "sql/database.h"
#include "sql/table_def.h"
#include "table/columns.h"
#include "table/row_columns.h"
#include "table/units.h"
#include "trace/module_frames.h"

namespace lamina::cli {

Result<Table> AllRules(const Common& common);
// Rules that decide about no kernel or op of a trace.
Result<Table> UnusedRules(Common& common, const std::string& trace);
// Examples and counter-examples that do not hold; no row when all do.
Result<Table> RuleProblems(const Common& common);

namespace {

constexpr std::string_view kMarkers = "module_marker";
constexpr std::string_view kMemory = "memory_category";

// All tables of patterns, in the order in which they are listed.
struct AllTables {
  std::shared_ptr<const rules::Catalog> catalog;
  std::shared_ptr<const analysis::layers::Rules> layers;
  std::shared_ptr<const rules::MarkerTable> markers;
  std::shared_ptr<const rules::PatternTable> activities, metrics, tiers;
  std::vector<std::pair<std::string, const rules::PatternTable*>> tables;
};

Result<AllTables> LoadTables(const Common& common) {
  const rules::DataSet data(common.asker.rules_dir);
  AllTables all;
  LAMINA_ASSIGN(all.catalog, rules::Catalog::Load(data));
  LAMINA_ASSIGN(all.layers, analysis::layers::LoadRules(data));
  LAMINA_ASSIGN(all.markers, rules::MarkerTable::Load(data));
  LAMINA_ASSIGN(all.activities, analysis::host::LoadRules(data));
  LAMINA_ASSIGN(all.metrics, analysis::host::LoadMetrics(data));
  LAMINA_ASSIGN(all.tiers, findings::LoadFrameTiers(data));
  all.tables.emplace_back("kernel_family", &all.catalog->kernel_table());
  all.tables.emplace_back("op_family", &all.catalog->op_table());
  all.tables.emplace_back("step_range", &all.catalog->step_table());
  for (const auto& [name, table] : all.layers->all())
    all.tables.emplace_back(name, table);
  all.tables.emplace_back("host_activity", all.activities.get());
  all.tables.emplace_back("outside_wait", &all.catalog->outside_table());
  all.tables.emplace_back("counter_metric", all.metrics.get());
  all.tables.emplace_back("frame_tier", all.tiers.get());
  return all;
}

struct RuleRow {
  std::string_view table, rule, value, match;
  std::string file;
};

RowColumns<RuleRow> RuleColumns(const char* doc) {
  return {"rules",
          doc,
          {{"table", ColumnType::kText, "Rule table.", &RuleRow::table},
           {"rule", ColumnType::kText, "Id of the rule.", &RuleRow::rule},
           {"value", ColumnType::kText, "What a match means.", &RuleRow::value},
           {"match", ColumnType::kText, "RE2 pattern.", &RuleRow::match},
           {"file", ColumnType::kText, "File and line.", &RuleRow::file}}};
}

RuleRow RowOf(std::string_view table, const rules::PatternRule& rule) {
  return {.table = table,
          .rule = rule.id,
          .value = rule.value,
          .match = rule.match,
          .file = rule.file + ":" + std::to_string(rule.line)};
}

RuleRow RowOf(const rules::MarkerRule& rule) {
  return {.table = kMarkers,
          .rule = rule.id,
          .value = rules::PhaseName(rule.phase),
          .match = rule.match,
          .file = rule.file + ":" + std::to_string(rule.line)};
}

// The rules of ranges that decide about none of the trace.
void AddUnusedMarkers(const rules::MarkerTable& markers,
                      const trace::Trace& trace, std::vector<RuleRow>& rows) {
  std::set<StringId> names;
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    if (trace::MayNameModule(trace.slices.kind[i]))
      names.insert(trace.slices.name[i]);
  }
  std::vector<bool> used(markers.rules().size(), false);
  for (const StringId name : names) {
    const int rule = markers.Find(trace.strings[name]);
    if (rule != rules::MarkerTable::kNone)
      used[static_cast<size_t>(rule)] = true;
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) rows.push_back(RowOf(markers.rules()[i]));
  }
}

}  // namespace

Result<Table> AllRules(const Common& common) {
  LAMINA_ASSIGN(const AllTables all, LoadTables(common));
  std::vector<RuleRow> rows;
  for (const auto& [name, patterns] : all.tables) {
    for (const rules::PatternRule& rule : patterns->rules())
      rows.push_back(RowOf(name, rule));
  }
  for (const rules::MarkerRule& rule : all.markers->rules())
    rows.push_back(RowOf(rule));
  LAMINA_ASSIGN(const auto memory,
                memory::Rules::Load(rules::DataSet(common.asker.rules_dir)));
  for (const memory::CategoryRule& rule : memory->rules()) {
    rows.push_back({.table = kMemory,
                    .rule = rule.id,
                    .value = memory::CategoryName(rule.category),
                    .match = rule.text,
                    .file = rule.source + ":" + std::to_string(rule.line)});
  }
  return RuleColumns("Name patterns in the order in which they are tried.")
      .Make(rows);
}

Result<Table> UnusedRules(Common& common, const std::string& path) {
  LAMINA_ASSIGN(const AllTables all, LoadTables(common));
  LAMINA_ASSIGN(auto session, engine::Session::Open(path, common.asker.Open()));
  const trace::Trace& trace = session->trace();
  std::set<StringId> kernels;
  std::set<StringId> ops;
  for (const trace::SliceId s : trace.device_slices())
    kernels.insert(trace.slices.name[s.value]);
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    if (trace.slices.kind[i] == trace::Kind::kOp)
      ops.insert(trace.slices.name[i]);
  }
  const auto texts = [&](const std::set<StringId>& ids) {
    std::vector<std::string_view> names;
    for (const StringId id : ids) names.push_back(trace.strings[id]);
    return names;
  };
  const std::vector<std::string_view> kernel_names = texts(kernels);
  const std::vector<std::string_view> op_names = texts(ops);
  std::vector<RuleRow> rows;
  for (const auto& [name, patterns] : all.tables) {
    std::vector<bool> used(patterns->rules().size(), false);
    const auto& names = name == "op_family" ? op_names : kernel_names;
    for (const int rule :
         patterns->FindAll(names, common.asker.ThreadCount())) {
      if (rule != rules::PatternTable::kNone)
        used[static_cast<size_t>(rule)] = true;
    }
    for (size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) rows.push_back(RowOf(name, patterns->rules()[i]));
    }
  }
  AddUnusedMarkers(*all.markers, trace, rows);
  return RuleColumns("Name patterns that decide about no name here.")
      .Make(rows);
}

Result<Table> RuleProblems(const Common& common) {
  LAMINA_ASSIGN(const AllTables all, LoadTables(common));
  Table table({"rule_problems",
               "Examples of rules that do not hold.",
               {{"table", ColumnType::kText, "Rule table."},
                {"problem", ColumnType::kText, "What does not hold."}}});
  const auto add = [&table](std::string_view name,
                            const std::vector<std::string>& problems) {
    for (const std::string& problem : problems) table.Add(name, problem);
  };
  for (const auto& [name, patterns] : all.tables)
    add(name, rules::CheckExamples(*patterns));
  add(kMarkers, all.markers->CheckExamples());
  const rules::DataSet data(common.asker.rules_dir);
  LAMINA_ASSIGN(const auto memory, memory::Rules::Load(data));
  add(kMemory, memory->CheckExamples());
  LAMINA_ASSIGN(const auto costs, cost::ModelSet::Load(data));
  add("cost", cost::CheckExamples(*costs));
  LAMINA_ASSIGN(const auto groups, graph::GroupRules::Load(data));
  for (const auto& [name, patterns] : groups->Tables())
    add("graph_" + std::string(name), rules::CheckExamples(*patterns));
  LAMINA_ASSIGN(const auto fusions, graph::LoadRuleSet(data));
  LAMINA_ASSIGN(const auto secrets, rules::SecretTable::Load(data));
  add("secret_pattern", secrets->CheckExamples());
  add("fusion", fusions.warnings);
  for (const graph::Rule& rule : fusions.rules)
    add("fusion", graph::CheckRuleExamples(rule));
  return table;
}

// lamina list: what the program knows.

namespace {

struct ListOptions {
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

// What there is to list.
constexpr std::string_view kLists =
    "lamina list formats     trace formats that are read\n"
    "lamina list analyses    tables of a report, with what they mean\n"
    "lamina list tables      tables of SQL (--columns: with their columns)\n"
    "lamina list columns     names of columns, with type and meaning\n"
    "lamina list functions   functions of SQL\n"
    "lamina list rules       name patterns (--check, --unused TRACE)\n"
    "lamina list costs       ops with a cost model\n"
    "lamina list devices     devices with their peaks\n";

Result<int> RunList(const ListOptions& options, Common& common) {
  if (options.what != "rules" && (options.check || !options.unused.empty()))
    return Fail(UsageError("--check and --unused are for rules",
                           "lamina list rules --check"));
  Document document;
  document.command = "list";
  if (options.what.empty()) {
    fmt::print("{}", kLists);
    return kFine;
  }
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

Run AddList(questions::Description& args, Common& common) {
  auto options = std::make_shared<ListOptions>();
  args.Add("what", options->what,
           "formats, analyses, tables, columns, functions, rules, costs or "
           "devices")
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
      "list", "Formats, tables, columns, functions, rules, costs and devices",
      "lamina list formats", &AddList);
}

}  // namespace lamina::cli
