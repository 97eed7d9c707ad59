// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/status.h"
#include "base/text.h"
#include "sql/table_def.h"
#include "table/units.h"

namespace lamina::sql {

std::string_view TypeName(Type type) {
  switch (type) {
    case Type::kInt:
      return "INTEGER";
    case Type::kReal:
      return "REAL";
    case Type::kText:
      return "TEXT";
  }
  return "";
}

std::string_view TableKindName(TableKind kind) {
  switch (kind) {
    case TableKind::kModel:
      return "model";
    case TableKind::kResult:
      return "result";
    case TableKind::kView:
      return "view";
  }
  return "";
}

std::string_view CostName(Cost cost) {
  switch (cost) {
    case Cost::kFree:
      return "free";
    case Cost::kTree:
      return "tree";
    case Cost::kAnalysis:
      return "analysis";
  }
  return "";
}

std::string ColumnDef::unit() const { return UnitOfName(name); }

std::span<const TableDef> Tables() {
  static const std::vector<TableDef> tables = [] {
    std::vector<TableDef> out;
    AddModelTables(out);
    AddTreeTables(out);
    AddSliceTables(out);
    AddEventTables(out);
    AddResultTables(out);
    AddCompiledTables(out);
    AddViews(out);
    return out;
  }();
  return tables;
}

const TableDef* FindTable(std::string_view name) {
  for (const TableDef& table : Tables()) {
    if (table.name == name) return &table;
  }
  return nullptr;
}

std::vector<const TableDef*> TablesIn(std::string_view sql) {
  std::vector<const TableDef*> out;
  for (size_t at = 0; at < sql.size();) {
    size_t end = at;
    while (end < sql.size() && IsWordCharacter(sql[end])) ++end;
    const TableDef* const table = FindTable(sql.substr(at, end - at));
    if (table != nullptr &&
        std::find(out.begin(), out.end(), table) == out.end())
      out.push_back(table);
    at = end + 1;
  }
  return out;
}

std::string ColumnsText(const TableDef& table) {
  std::string out = table.name + " has ";
  for (const ColumnDef& column : table.columns)
    out += (&column == table.columns.data() ? "" : ", ") + column.name;
  return out;
}

}  // namespace lamina::sql
