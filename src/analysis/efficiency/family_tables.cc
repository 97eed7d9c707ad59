// SPDX-License-Identifier: Apache-2.0
#include "analysis/efficiency/family_tables.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "table/row_columns.h"

namespace lamina::analysis::efficiency {
namespace {

// Of the model of a call; nothing where it has no number of that name.
std::optional<double> ParameterOf(const CostView::Group& group,
                                  const std::string& name) {
  const auto& own = group.model->model->parameters;
  const auto it = std::find(own.begin(), own.end(), name);
  if (it == own.end()) return std::nullopt;
  const cost::Value& value =
      group.cost->parameters[static_cast<size_t>(it - own.begin())];
  if (!value.is_number()) return std::nullopt;
  return value.number();
}

std::optional<double> PercentOfRoofline(const Row& row) {
  if (!row.roofline || row.busy_ns <= 0) return std::nullopt;
  return Percent(
      row.roofline->seconds * 1e9 * static_cast<double>(row.stats.count),
      static_cast<double>(row.busy_ns));
}

}  // namespace

std::vector<Table> FamilyTables(const Context& context,
                                const std::vector<Row>& all) {
  std::vector<Table> tables;
  std::map<std::string_view, std::vector<const Row*>> families;
  for (const Row& row : all) {
    if (row.group->model != nullptr && row.group->cost)
      families[row.family].push_back(&row);
  }
  for (const auto& [family, rows] : families) {
    std::vector<std::string> names;
    for (const Row* row : rows) {
      for (const std::string& name : row->group->model->model->parameters) {
        if (std::find(names.begin(), names.end(), name) == names.end())
          names.push_back(name);
      }
    }
    if (names.empty()) continue;
    const auto& strings = context.trace.strings;
    RowColumns<Row> columns{
        "efficiency_" + std::string(family),
        "Parameters of the models of this family.",
        {{"op", ColumnType::kText, "Op.",
          [&](const Row& row) { return strings[row.group->name]; }}}};
    for (const std::string& name : names) {
      columns.columns.push_back(
          {name.c_str(), ColumnType::kReal, "Parameter of the cost model.",
           [&name](const Row& row) { return ParameterOf(*row.group, name); }});
    }
    for (const RowColumn<Row>& column : std::initializer_list<RowColumn<Row>>{
             {"types", ColumnType::kText, "Element types, JSON.",
              [&](const Row& row) { return strings[row.group->types]; },
              Shown::kHidden},
             {"count", ColumnType::kInt, "Calls.",
              [](const Row& row) { return row.stats.count; }},
             {"kernel_time_us", ColumnType::kTime, "Sum of durations.",
              &Row::kernel_time_ns},
             {"flops", ColumnType::kReal, "FLOPs of one call.",
              [](const Row& row) { return row.group->cost->flops; },
              Shown::kCount},
             {"bytes", ColumnType::kInt, "Bytes of one call.",
              [](const Row& row) { return WholeBytes(row.group->cost->bytes); },
              Shown::kBytes},
             {"percent_of_roofline", ColumnType::kReal,
              "Least time by busy time.", &PercentOfRoofline, Shown::kPercent}})
      columns.columns.push_back(column);
    Table table(columns.schema());
    for (const Row* row : rows) columns.Add(table, *row);
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace lamina::analysis::efficiency
