// SPDX-License-Identifier: Apache-2.0
#include "engine/report_file.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/analyses.h"
#include "base/byte_source.h"
#include "base/opened.h"

namespace lamina::engine {
namespace {

using Json = nlohmann::json;

constexpr size_t kHead = 4096;
constexpr size_t kMaxReport = size_t{1} << 30;
// Doubles hold nanoseconds exactly up to here.
constexpr double kMaxNs = 9007199254740992.0;

// "{" and, as the first key, "lamina" with a report inside.
bool IsReport(std::string_view head) {
  const auto skip = [&](size_t pos) {
    return std::min(head.find_first_not_of(" \t\r\n", pos), head.size());
  };
  size_t pos = skip(0);
  if (pos >= head.size() || head[pos] != '{') return false;
  pos = skip(pos + 1);
  if (!head.substr(pos).starts_with("\"lamina\"")) return false;
  return head.find("\"command\": \"report\"") != std::string_view::npos;
}

const Schema* FindSchema(const std::vector<Schema>& schemas,
                         std::string_view name) {
  for (const Schema& schema : schemas) {
    if (schema.name == name) return &schema;
  }
  return nullptr;
}

// A cell; the text of `json` is not copied. Null when the type is another.
Value CellOf(const Json& json, ColumnType type) {
  switch (type) {
    case ColumnType::kText:
      return json.is_string() ? Value(json.get_ref<const std::string&>())
                              : Value();
    case ColumnType::kBool:
      return json.is_boolean() ? Value(json.get<bool>()) : Value();
    case ColumnType::kInt:
      return json.is_number_integer() ? Value(json.get<int64_t>()) : Value();
    case ColumnType::kReal:
      return json.is_number() ? Value(json.get<double>()) : Value();
    case ColumnType::kTime: {
      if (!json.is_number()) return {};
      const double ns = json.get<double>() * 1000;
      return std::fabs(ns) < kMaxNs ? Value(std::llround(ns)) : Value();
    }
  }
  return {};
}

}  // namespace

Result<std::optional<ResultSet>> ReadReportFile(const std::string& path) {
  // The bytes of a pipe come once, and belong to whoever reads a trace.
  std::error_code error;
  const auto other_form = [&](const std::string& what) {
    return Fail(InputError(path, what + " of a report is not read again",
                           "give the traces, or their reports in JSON: "
                           "⟨lamina⟩ report TRACE --format json -o FILE"));
  };
  if (std::filesystem::is_regular_file(
          std::filesystem::path(NameToRead(path).text()) / "gpu_timeline.csv",
          error))
    return other_form("the folder of tables");
  if (!std::filesystem::is_regular_file(NameToRead(path).text(), error))
    return std::optional<ResultSet>();
  LAMINA_ASSIGN(const std::string head, ReadHead(path, kHead));
  if (path.ends_with(".xlsx") && head.starts_with("PK"))
    return other_form("the workbook");
  if (head.starts_with("<!DOCTYPE html") || head.starts_with("<!doctype html"))
    return other_form("the page");
  if (!IsReport(head)) return std::optional<ResultSet>();
  LAMINA_ASSIGN(const std::string text, ReadAll(path, kMaxReport));
  const Json json = Json::parse(text, nullptr, false);
  const auto tables = json.is_object() ? json.find("tables") : json.end();
  if (!json.is_object() || tables == json.end() || !tables->is_object()) {
    return Fail(InputError(path, "the report is not complete",
                           "write it again: ⟨lamina⟩ report TRACE --format "
                           "json -o FILE"));
  }
  std::vector<Schema> schemas;
  for (const analysis::AnalysisInfo& info : analysis::Analyses()) {
    for (Schema& schema : info.schemas()) schemas.push_back(std::move(schema));
  }
  ResultSet result;
  for (const auto& [name, rows] : tables->items()) {
    const Schema* schema = FindSchema(schemas, name);
    if (schema == nullptr || !rows.is_array()) continue;
    Table table(*schema);
    std::vector<Value> cells;
    for (const Json& row : rows) {
      cells.clear();
      for (const Column& column : schema->columns) {
        const auto cell = row.is_object() ? row.find(column.name) : row.end();
        cells.push_back(row.is_object() && cell != row.end()
                            ? CellOf(*cell, column.type)
                            : Value());
      }
      table.AddRow(cells);
    }
    result.tables.push_back(std::move(table));
  }
  return std::optional(std::move(result));
}

}  // namespace lamina::engine
