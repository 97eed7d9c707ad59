// SPDX-License-Identifier: Apache-2.0
#include "sql/collected.h"

#include <algorithm>
#include <bit>

#include "base/decimal.h"
#include "sql/table_def.h"

namespace lamina::sql {
namespace {

// What a column of a result means, when it is named as a column of a table.
std::string DocOf(std::string_view name) {
  static const TextMap<const std::string*> docs = [] {
    TextMap<const std::string*> out;
    for (const TableDef& table : Tables()) {
      for (const ColumnDef& column : table.columns)
        out.try_emplace(column.name, &column.doc);
    }
    return out;
  }();
  const auto it = docs.find(name);
  return it == docs.end() ? "" : *it->second;
}

}  // namespace

Collected::Collected(std::vector<std::string> names)
    : names_(std::move(names)), data_(names_.size()) {}

void Collected::AddReal(size_t column, double value) {
  Push(column, Kind::kReal, std::bit_cast<int64_t>(value));
}

void Collected::AddText(size_t column, std::string_view text) {
  Place& place =
      places_[(reinterpret_cast<uintptr_t>(text.data()) >> 3) % kPlaces];
  // Another text may stand there by now.
  if (place.data != text.data() || strings_[place.id] != text)
    place = {text.data(), strings_.Intern(text)};
  Push(column, Kind::kText, place.id.value);
}

void Collected::Settle() {
  for (Data& data : data_) {
    const bool text = data.Has(Kind::kText);
    if (!text && !data.Has(Kind::kReal)) continue;
    if (!data.Has(Kind::kInt) && !(text && data.Has(Kind::kReal))) continue;
    for (size_t row = 0; row < data.kinds.size(); ++row) {
      Kind& kind = data.kinds[row];
      int64_t& cell = data.cells[row];
      if (kind == Kind::kNull || kind == Kind::kText) continue;
      if (!text) {
        if (kind == Kind::kInt)
          cell = std::bit_cast<int64_t>(static_cast<double>(cell));
        kind = Kind::kReal;
        continue;
      }
      std::string number;
      if (kind == Kind::kInt) {
        AppendInt(number, cell);
      } else {
        AppendNumber(number, std::bit_cast<double>(cell));
      }
      kind = Kind::kText;
      cell = strings_.Intern(number).value;
    }
  }
}

std::optional<size_t> Collected::Find(std::string_view name) const {
  const auto it = std::find(names_.begin(), names_.end(), name);
  if (it == names_.end()) return std::nullopt;
  return static_cast<size_t>(it - names_.begin());
}

Value Collected::Cell(size_t row, int column) const {
  const Data& data = data_[static_cast<size_t>(column)];
  const int64_t cell = data.cells[row];
  switch (data.kinds[row]) {
    case Kind::kText:
      return strings_[StringId(static_cast<uint32_t>(cell))];
    case Kind::kReal:
      return std::bit_cast<double>(cell);
    case Kind::kInt:
    case Kind::kBool:
      return cell;
    case Kind::kNull:
      break;
  }
  return {};
}

ColumnType Collected::TypeOf(size_t column) const {
  const Data& data = data_[column];
  if (data.Has(Kind::kText)) return ColumnType::kText;
  if (data.Has(Kind::kReal)) return ColumnType::kReal;
  return data.Has(Kind::kInt) ? ColumnType::kInt : ColumnType::kText;
}

Table Collected::ToTable(std::string name) const {
  Schema schema;
  schema.name = std::move(name);
  for (size_t c = 0; c < names_.size(); ++c) {
    const std::string& column = names_[c];
    const bool percent = column.ends_with("_percent") || column == "percent";
    schema.columns.push_back({column, TypeOf(c), DocOf(column),
                              percent ? Shown::kPercent : Shown::kPlain});
  }
  Table table(std::move(schema));
  std::vector<Value> row(names_.size());
  for (size_t r = 0; r < size(); ++r) {
    for (size_t c = 0; c < row.size(); ++c) row[c] = At(r, c);
    table.AddRow(row);
  }
  return table;
}

}  // namespace lamina::sql
