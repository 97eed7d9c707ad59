// SPDX-License-Identifier: Apache-2.0
#include "cli/list_rules.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/host/counters.h"
#include "analysis/host/idle.h"
#include "analysis/layers/layers.h"
#include "cost/models.h"
#include "graph/layers/rules.h"
#include "graph/passes/rule_file.h"
#include "memory/attribution.h"
#include "rules/catalog.h"
#include "rules/markers.h"
#include "rules/secrets.h"
#include "table/row_columns.h"
#include "trace/module_frames.h"

namespace lamina::cli {
namespace {

constexpr std::string_view kMarkers = "module_marker";
constexpr std::string_view kMemory = "memory_category";

// All tables of patterns, in the order in which they are listed.
struct AllTables {
  std::shared_ptr<const rules::Catalog> catalog;
  std::shared_ptr<const analysis::layers::Rules> layers;
  std::shared_ptr<const rules::MarkerTable> markers;
  std::shared_ptr<const rules::PatternTable> activities, metrics;
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
  all.tables.emplace_back("kernel_family", &all.catalog->kernel_table());
  all.tables.emplace_back("op_family", &all.catalog->op_table());
  all.tables.emplace_back("step_range", &all.catalog->step_table());
  for (const auto& [name, table] : all.layers->all())
    all.tables.emplace_back(name, table);
  all.tables.emplace_back("host_activity", all.activities.get());
  all.tables.emplace_back("outside_wait", &all.catalog->outside_table());
  all.tables.emplace_back("counter_metric", all.metrics.get());
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

}  // namespace lamina::cli
