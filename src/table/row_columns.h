// SPDX-License-Identifier: Apache-2.0
//
// Columns of a table that is made of rows of one type: name, type, meaning and
// the member or function that a cell comes from stand in one line, so that no
// two columns can be swapped.
//
//   const RowColumns<OpRow>& OpColumns() {
//     static const RowColumns<OpRow> columns{
//         "ops",
//         "Device time by op.",
//         {{"op", ColumnType::kText, "Name.", &OpRow::op},
//          {"count", ColumnType::kInt, "Calls.", &OpRow::count}}};
//     return columns;
//   }
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lamina/table.h"

namespace lamina {

template <class Row>
struct RowColumn {
  // `get` gives what a Value is made of: a number, a text that outlives the
  // call, an optional of them.
  template <class Get>
  RowColumn(std::string name, ColumnType type, std::string doc, Get get,
            Shown shown = Shown::kPlain)
      : column{std::move(name), type, std::move(doc), shown},
        cell([get](const Row& row) { return Value(std::invoke(get, row)); }) {
    using Given = std::invoke_result_t<Get, const Row&>;
    static_assert(std::is_lvalue_reference_v<Given> ||
                      (!std::is_same_v<Given, std::string> &&
                       !std::is_same_v<Given, std::optional<std::string>>),
                  "the text is gone when the cell is written: keep it in Row");
  }

  Column column;
  std::function<Value(const Row&)> cell;
};

template <class Row>
struct RowColumns {
  std::string name;
  std::string doc;
  std::vector<RowColumn<Row>> columns;

  Schema schema() const {
    Schema schema{name, doc, {}};
    for (const RowColumn<Row>& c : columns) schema.columns.push_back(c.column);
    return schema;
  }
  // `table` has schema().
  void Add(Table& table, const Row& row) const {
    std::vector<Value> cells;
    cells.reserve(columns.size());
    for (const RowColumn<Row>& c : columns) cells.push_back(c.cell(row));
    table.AddRow(cells);
  }
  Table Make(const std::vector<Row>& rows) const {
    Table table(schema());
    for (const Row& row : rows) Add(table, row);
    return table;
  }
};

}  // namespace lamina
