// SPDX-License-Identifier: Apache-2.0
//
// A Table is what every analysis returns and every writer prints: typed
// columns, each with a unit and one sentence of meaning. Writers know tables
// and nothing of traces; analyses know nothing of CSV or HTML.
//
// Texts may come from the input and are not escaped: whoever prints them does
// it for the medium.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lamina/export.h"

namespace lamina {

class StringPool;

enum class ColumnType : uint8_t {
  kText,
  kInt,
  kReal,
  kBool,
  kTime,  // int64 nanoseconds, written as decimal microseconds (name: *_us)
};

// How a person wants to see a number on a terminal; files hold it in full.
enum class Shown : uint8_t {
  kPlain,
  kPercent,  // 0..100
  kBytes,
  kCount,   // scaled by 1000: FLOPs
  kBar,     // kPercent with a bar beside it
  kHidden,  // in files only
};

struct Column {
  std::string name;  // snake_case with the unit: kernel_time_us, dur_ns
  ColumnType type = ColumnType::kText;
  std::string doc;  // one sentence, ends in a full stop
  Shown shown = Shown::kPlain;
};

struct Schema {
  std::string name;  // snake_case; the file and SQL name
  std::string doc;
  std::vector<Column> columns;

  // Position of a column; the program stops when there is none.
  LAMINA_API size_t IndexOf(std::string_view column) const;
  LAMINA_API std::optional<size_t> Find(std::string_view column) const;
};

// The name of a column where times are integers in nanoseconds, as they are in
// memory, SQL and Arrow: `x_ns` for a time `x_us`.
LAMINA_API std::string NameInNs(const Column& column);

// One cell, for passing around. Text is not owned: that of a cell is valid as
// long as its table. Times are integers, in nanoseconds.
class Value {
 public:
  enum class Kind : uint8_t { kNull, kText, kInt, kReal, kBool };

  Value() = default;
  Value(std::nullopt_t) {}  // NOLINT: cells are written as plain values
  Value(std::string_view text) : kind_(Kind::kText), text_(text) {}  // NOLINT
  Value(const std::string& text)                                     // NOLINT
      : kind_(Kind::kText), text_(text) {}
  Value(const char* text) : kind_(Kind::kText), text_(text) {}  // NOLINT
  Value(bool value) : kind_(Kind::kBool), int_(value) {}        // NOLINT
  Value(double value) : kind_(Kind::kReal), real_(value) {}     // NOLINT
  template <class T>
  requires std::is_integral_v<T> Value(T value)  // NOLINT
      : kind_(Kind::kInt), int_(static_cast<int64_t>(value)) {}
  template <class T>
  Value(const std::optional<T>& value) {  // NOLINT
    if (value) *this = Value(*value);
  }

  Kind kind() const { return kind_; }
  bool null() const { return kind_ == Kind::kNull; }
  // What a value of that kind holds; real() of an integer is its number.
  std::string_view text() const { return text_; }
  int64_t integer() const { return int_; }
  double real() const {
    return kind_ == Kind::kReal ? real_ : static_cast<double>(int_);
  }
  bool boolean() const { return int_ != 0; }

 private:
  Kind kind_ = Kind::kNull;
  union {
    int64_t int_ = 0;
    double real_;
  };
  std::string_view text_;
};

// The cells of a column where they lie: what its type says, the rest is empty.
// Valid as long as the table lives and is not changed.
struct ColumnView {
  std::span<const int64_t> ints;      // kInt, kTime, kBool; null: 0
  std::span<const double> reals;      // kReal; null: 0
  std::span<const uint32_t> texts;    // kText: numbers for Table::Text
  std::span<const uint64_t> present;  // bit i of word i / 64; empty: no nulls

  bool IsNull(size_t row) const {
    return !present.empty() && (present[row / 64] >> row % 64 & 1) == 0;
  }
};

class LAMINA_API Table {
 public:
  explicit Table(Schema schema);
  Table(Table&&) noexcept;
  Table& operator=(Table&&) noexcept;
  ~Table();

  const Schema& schema() const { return schema_; }
  const std::string& name() const { return schema_.name; }
  size_t rows() const { return rows_; }
  size_t columns() const { return schema_.columns.size(); }

  // Adds a row; one value per column in order, of the type of the column (an
  // integer may stand in a real column); the program stops for another type.
  template <class... Values>
  void Add(const Values&... values) {
    const Value row[] = {Value(values)...};
    AddRow(row, sizeof...(values));
  }
  void AddRow(const Value* values, size_t count);
  void AddRow(const std::vector<Value>& values) {
    AddRow(values.data(), values.size());
  }

  Value At(size_t row, size_t column) const;
  Value At(size_t row, std::string_view column) const {
    return At(row, schema_.IndexOf(column));
  }
  bool IsNull(size_t row, size_t column) const {
    return View(column).IsNull(row);
  }
  // Of a time, integer or truth column; 0 where it is null.
  int64_t Int(size_t row, size_t column) const {
    return data_[column].ints[row];
  }

  // `column` must be one of the table.
  ColumnView View(size_t column) const {
    const ColumnData& data = data_[column];
    return {data.ints, data.reals, data.texts, data.present};
  }
  // The distinct texts of all columns, by number.
  std::string_view Text(uint32_t number) const;
  size_t texts() const;

  // Sum of a time, integer or truth column without its nulls; the program
  // stops for a column of another type.
  int64_t Sum(std::string_view column) const;

  // Keeps the first `rows` rows.
  void Truncate(size_t rows);

 private:
  struct ColumnData {
    std::vector<int64_t> ints;      // kInt, kBool, kTime
    std::vector<double> reals;      // kReal
    std::vector<uint32_t> texts;    // kText: StringId values
    std::vector<uint64_t> present;  // a bit per row; empty: no null so far
  };

  Schema schema_;
  std::vector<ColumnData> data_;
  std::unique_ptr<StringPool> strings_;  // each distinct text once
  size_t rows_ = 0;
};

// The cell as it stands in a CSV file: exact, without quoting. A time is in
// microseconds with three decimals, null is empty.
LAMINA_API std::string CellText(const Table& table, size_t row, size_t column);
LAMINA_API void AppendCellText(std::string& out, const Table& table, size_t row,
                               size_t column);

}  // namespace lamina
