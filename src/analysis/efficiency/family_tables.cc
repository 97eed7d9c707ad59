// SPDX-License-Identifier: Apache-2.0
#include "analysis/efficiency/family_tables.h"

#include <algorithm>
#include <map>
#include <string>

namespace lamina::analysis::efficiency {

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
    Schema schema{"efficiency_" + std::string(family),
                  "Parameters of the models of this family.",
                  {{"op", ColumnType::kText, "Op."}}};
    for (const std::string& name : names) {
      schema.columns.push_back(
          {name, ColumnType::kReal, "Parameter of the cost model."});
    }
    for (Column column :
         {Column{"types", ColumnType::kText, "Element types, JSON.",
                 Shown::kHidden},
          Column{"count", ColumnType::kInt, "Calls."},
          Column{"kernel_time_us", ColumnType::kTime, "Sum of durations."},
          Column{"flops", ColumnType::kReal, "FLOPs of one call.",
                 Shown::kCount},
          Column{"bytes", ColumnType::kReal, "Bytes of one call.",
                 Shown::kBytes},
          Column{"percent_of_roofline", ColumnType::kReal,
                 "Least time by busy time.", Shown::kPercent}})
      schema.columns.push_back(std::move(column));
    Table table(std::move(schema));
    for (const Row* row : rows) {
      const CostView::Group& group = *row->group;
      const auto& own = group.model->model->parameters;
      std::vector<Value> cells = {context.trace.strings[group.name]};
      for (const std::string& name : names) {
        const auto it = std::find(own.begin(), own.end(), name);
        Value cell;
        if (it != own.end()) {
          const cost::Value& value =
              group.cost->parameters[static_cast<size_t>(it - own.begin())];
          if (value.is_number()) cell = Value(value.number());
        }
        cells.push_back(cell);
      }
      cells.insert(
          cells.end(),
          {context.trace.strings[group.types], row->stats.count,
           row->kernel_time_ns, group.cost->flops, group.cost->bytes,
           row->roofline && row->busy_ns > 0
               ? Value(Percent(row->roofline->seconds * 1e9 *
                                   static_cast<double>(row->stats.count),
                               static_cast<double>(row->busy_ns)))
               : Value()});
      table.AddRow(cells);
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace lamina::analysis::efficiency
