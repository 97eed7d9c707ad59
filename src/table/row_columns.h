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

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lamina/table.h"

namespace lamina {

// Plain data: a list of columns is copied as bytes, and a column costs the
// compiler a few stores instead of strings and a closure.
template <class Row>
class RowColumn {
 public:
  // `name` and `doc` are literals. `get` gives what a Value is made of: a
  // number, a text that outlives the call, an optional of them. It is a pointer
  // to a member, or a function without state of its own.
  template <class Get>
  RowColumn(const char* name, ColumnType type, const char* doc, Get get,
            Shown shown = Shown::kPlain)
      : name_(name), doc_(doc), call_(&Call<Get>), type_(type), shown_(shown) {
    using Given = std::invoke_result_t<Get, const Row&>;
    static_assert(std::is_lvalue_reference_v<Given> ||
                      (!std::is_same_v<Given, std::string> &&
                       !std::is_same_v<Given, std::optional<std::string>>),
                  "the text is gone when the cell is written: keep it in Row");
    static_assert(std::is_trivially_copyable_v<Get> && sizeof(Get) <= kGetSize,
                  "more than a pointer to a member or a few values");
    std::memcpy(get_, &get, sizeof(Get));
  }

  const char* name() const { return name_; }
  const char* doc() const { return doc_; }
  ColumnType type() const { return type_; }
  Shown shown() const { return shown_; }
  Column column() const { return {name_, type_, doc_, shown_}; }
  Value Cell(const Row& row) const { return call_(get_, row); }

 private:
  static constexpr size_t kGetSize = 2 * sizeof(void*);

  template <class Get>
  static Value Call(const void* get, const Row& row) {
    return Value(std::invoke(*static_cast<const Get*>(get), row));
  }

  const char* name_;
  const char* doc_;
  Value (*call_)(const void* get, const Row& row);
  alignas(void*) unsigned char get_[kGetSize];
  ColumnType type_;
  Shown shown_;
};

template <class Row>
struct RowColumns {
  std::string name;
  std::string doc;
  std::vector<RowColumn<Row>> columns;

  Schema schema() const {
    Schema schema{name, doc, {}};
    schema.columns.reserve(columns.size());
    for (const RowColumn<Row>& c : columns)
      schema.columns.push_back(c.column());
    return schema;
  }
  // `table` has schema().
  void Add(Table& table, const Row& row) const {
    std::vector<Value> cells;
    cells.reserve(columns.size());
    for (const RowColumn<Row>& c : columns) cells.push_back(c.Cell(row));
    table.AddRow(cells);
  }
  Table Make(const std::vector<Row>& rows) const;
};

// Adds many rows, without an allocation for each.
template <class Row>
class RowWriter {
 public:
  explicit RowWriter(const RowColumns<Row>& columns)
      : columns_(columns),
        table_(columns.schema()),
        cells_(columns.columns.size()) {}
  void Add(const Row& row) {
    for (size_t c = 0; c < cells_.size(); ++c)
      cells_[c] = columns_.columns[c].Cell(row);
    table_.AddRow(cells_.data(), cells_.size());
  }
  // The table with all rows; nothing may be added any more.
  Table Take() { return std::move(table_); }

 private:
  const RowColumns<Row>& columns_;
  Table table_;
  std::vector<Value> cells_;
};

template <class Row>
Table RowColumns<Row>::Make(const std::vector<Row>& rows) const {
  RowWriter<Row> writer(*this);
  for (const Row& row : rows) writer.Add(row);
  return writer.Take();
}

}  // namespace lamina
