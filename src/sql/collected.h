// SPDX-License-Identifier: Apache-2.0
//
// A result whose columns are known by their cells only: filled cell by cell,
// and given its types at the end.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_pool.h"
#include "sql/rows.h"

namespace lamina::sql {

class Collected : public Rows {
 public:
  explicit Collected(std::vector<std::string> names);

  // The next cell of a column; all columns get as many.
  void AddNull(size_t column) { Push(column, Kind::kNull, 0); }
  void AddInt(size_t column, int64_t value) { Push(column, Kind::kInt, value); }
  void AddReal(size_t column, double value);
  void AddText(size_t column, std::string_view text);
  // Makes the cells of each column one of text, real or integer: text where a
  // cell is one, else real where a cell is one. Before cells are read.
  void Settle();

  const std::vector<std::string>& names() const { return names_; }
  std::optional<size_t> Find(std::string_view name) const;
  size_t size() const override {
    return data_.empty() ? 0 : data_.front().kinds.size();
  }
  Value Cell(size_t row, int column) const override;
  Value At(size_t row, size_t column) const {
    return Cell(row, static_cast<int>(column));
  }
  // A number that two cells of a column share if and only if they are equal;
  // none of a null.
  std::optional<int64_t> CodeOf(size_t row, size_t column) const {
    const Data& data = data_[column];
    if (data.kinds[row] == Kind::kNull) return std::nullopt;
    return data.cells[row];
  }
  // A column of nulls is one of text.
  Table ToTable(std::string name) const;

 private:
  using Kind = Value::Kind;
  struct Data {
    std::vector<Kind> kinds;
    std::vector<int64_t> cells;  // of a real its bits, of a text its number
    std::array<bool, 5> has{};   // by kind

    bool Has(Kind kind) const { return has[static_cast<size_t>(kind)]; }
  };
  // Texts that are read from one place come again and again from there.
  struct Place {
    const char* data = nullptr;
    StringId id;
  };
  static constexpr size_t kPlaces = 256;

  void Push(size_t column, Kind kind, int64_t cell) {
    Data& data = data_[column];
    data.kinds.push_back(kind);
    data.cells.push_back(cell);
    data.has[static_cast<size_t>(kind)] = true;
  }
  ColumnType TypeOf(size_t column) const;

  std::vector<std::string> names_;
  std::vector<Data> data_;
  StringPool strings_;
  std::array<Place, kPlaces> places_;
};

}  // namespace lamina::sql
