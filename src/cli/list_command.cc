// SPDX-License-Identifier: Apache-2.0
//
// lamina list: what the program knows.
#include "analysis/analyses.h"
#include "analysis/layers/layers.h"
#include "cli/commands.h"
#include "cost/device.h"
#include "ingest/ingest.h"

namespace lamina::cli {
namespace {

struct Options {
  std::string what;
};

Table Formats() {
  Table table({"formats",
               "Trace formats that are read.",
               {{"format", ColumnType::kText, "Name."},
                {"files", ColumnType::kText, "What the files are."},
                {"gives", ColumnType::kText, "What a report gets from it."}}});
  for (const ingest::FormatInfo& format : ingest::Formats())
    table.Add(format.name, format.doc, format.gives);
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

Result<Table> Rules(const Common& common) {
  const rules::DataSet data(common.rules_dir);
  LAMINA_ASSIGN(const auto catalog, rules::Catalog::Load(data));
  Table table({"rules",
               "Name patterns in the order in which they are tried.",
               {{"table", ColumnType::kText, "Rule table."},
                {"rule", ColumnType::kText, "Id of the rule."},
                {"value", ColumnType::kText, "What a match means."},
                {"match", ColumnType::kText, "RE2 pattern."},
                {"file", ColumnType::kText, "File and line."}}});
  const auto add = [&](std::string_view name,
                       const rules::PatternTable& patterns) {
    for (const rules::PatternRule& rule : patterns.rules()) {
      table.Add(name, rule.id, rule.value, rule.match,
                rule.file + ":" + std::to_string(rule.line));
    }
  };
  add("kernel_family", catalog->kernel_table());
  add("op_family", catalog->op_table());
  LAMINA_ASSIGN(const auto layers, analysis::layers::LoadRules(data));
  for (const auto& [name, patterns] : layers->all()) add(name, *patterns);
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
  Document document;
  document.command = "list";
  if (options.what == "formats") {
    document.result.tables.push_back(Formats());
  } else if (options.what == "analyses") {
    document.result.tables.push_back(Analyses());
  } else {
    LAMINA_ASSIGN(Table table, options.what == "costs"     ? Costs(common)
                               : options.what == "devices" ? Devices(common)
                                                           : Rules(common));
    document.result.tables.push_back(std::move(table));
  }
  if (common.top == 0) common.top = 100000;
  LAMINA_TRY(Write(document, common));
  return kFine;
}

Run Add(CLI::App& app, Common& common) {
  auto options = std::make_shared<Options>();
  app.add_option("what", options->what,
                 "formats, analyses, rules, costs or devices")
      ->required()
      ->check(
          CLI::IsMember({"formats", "analyses", "rules", "costs", "devices"}));
  common.AddTo(app);
  return [options, &common] { return RunList(*options, common); };
}

}  // namespace

CommandInfo ListCommand() {
  return {"list",
          "Formats, analyses, rules, costs and devices that lamina knows",
          "lamina list formats", &Add};
}

}  // namespace lamina::cli
