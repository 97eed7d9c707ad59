// SPDX-License-Identifier: Apache-2.0
//
// Writes many rows of one type: a table with millions of them feels what
// RowColumns::Add allocates for each.
#pragma once

#include <vector>

#include "table/row_columns.h"

namespace lamina {

template <class Row>
class RowWriter {
 public:
  explicit RowWriter(const RowColumns<Row>& columns)
      : columns_(columns), table_(columns.schema()) {
    cells_.resize(columns.columns.size());
  }
  void Add(const Row& row) {
    for (size_t c = 0; c < cells_.size(); ++c)
      cells_[c] = columns_.columns[c].cell(row);
    table_.AddRow(cells_.data(), cells_.size());
  }
  // The table with all rows; nothing may be added any more.
  Table Take() { return std::move(table_); }

 private:
  const RowColumns<Row>& columns_;
  Table table_;
  std::vector<Value> cells_;
};

}  // namespace lamina
