// SPDX-License-Identifier: Apache-2.0
//
// Loads data/layers.
#include "analysis/layers/layers.h"

namespace lamina::analysis::layers {
namespace {

using rules::PatternTable;

struct TableName {
  const char* name;
  PatternTable NameRules::*table;
};

// Names of the tables in the data files.
constexpr TableName kOwn[] = {{"stage", &NameRules::stage},
                              {"layer_start", &NameRules::layer_start},
                              {"short_name", &NameRules::short_name},
                              {"marker_moe", &NameRules::moe},
                              {"marker_fc", &NameRules::fc},
                              {"marker_mla", &NameRules::mla},
                              {"marker_gdn", &NameRules::gdn},
                              {"marker_ssm", &NameRules::ssm},
                              {"marker_host", &NameRules::host}};
constexpr TableName kClassic[] = {
    {"classic_stage_unknown", &NameRules::stage_unknown},
    {"classic_stage", &NameRules::stage},
    {"classic_type", &NameRules::type},
    {"classic_short_name", &NameRules::short_name},
    {"classic_layer_start", &NameRules::layer_start},
    {"classic_moe", &NameRules::moe},
    {"classic_fc", &NameRules::fc},
    {"classic_mla", &NameRules::mla},
    {"classic_gdn", &NameRules::gdn}};

}  // namespace

std::vector<std::pair<std::string, const PatternTable*>> Rules::all() const {
  std::vector<std::pair<std::string, const PatternTable*>> tables;
  for (const TableName& t : kOwn) tables.emplace_back(t.name, &(own.*t.table));
  for (const TableName& t : kClassic)
    tables.emplace_back(t.name, &(classic.*t.table));
  return tables;
}

Result<std::shared_ptr<const Rules>> LoadRules(const rules::DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("layers"));
  auto rules = std::make_shared<Rules>();
  for (const TableName& t : kOwn) {
    LAMINA_ASSIGN(rules->own.*t.table,
                  rules::ReadPatternTable(files, t.name, "value"));
  }
  for (const TableName& t : kClassic) {
    LAMINA_ASSIGN(rules->classic.*t.table,
                  rules::ReadPatternTable(files, t.name, "value"));
  }
  return std::shared_ptr<const Rules>(std::move(rules));
}

}  // namespace lamina::analysis::layers
