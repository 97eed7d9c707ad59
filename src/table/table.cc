// SPDX-License-Identifier: Apache-2.0

#include "lamina/table.h"

#include "base/decimal.h"
#include "base/status.h"
#include "base/string_pool.h"
#include "table/text_codes.h"
#include "table/units.h"

namespace lamina {

std::optional<size_t> Schema::Find(std::string_view column) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == column) return i;
  }
  return std::nullopt;
}

size_t Schema::IndexOf(std::string_view column) const {
  const auto index = Find(column);
  LAMINA_CHECK(index.has_value());
  return *index;
}

std::string NameInNs(const Column& column) {
  std::string name = column.name;
  if (column.type != ColumnType::kTime) return name;
  if (name.ends_with("_us")) name.resize(name.size() - 3);
  return name + "_ns";
}

namespace {

// Bits of the rows that have a value, in whole words.
void AddBit(std::vector<uint64_t>& bits, size_t row, bool value) {
  if (row / 64 == bits.size()) bits.push_back(0);
  if (value) bits[row / 64] |= uint64_t{1} << row % 64;
}

}  // namespace

Table::Table(Schema schema)
    : schema_(std::move(schema)),
      data_(schema_.columns.size()),
      strings_(std::make_unique<StringPool>()) {}

Table::Table(Table&&) noexcept = default;
Table& Table::operator=(Table&&) noexcept = default;
Table::~Table() = default;

void Table::AddRow(const Value* values, size_t count) {
  LAMINA_CHECK(count == schema_.columns.size());
  for (size_t c = 0; c < count; ++c) {
    const Value& value = values[c];
    ColumnData& data = data_[c];
    if (value.null() && data.present.empty()) {
      for (size_t row = 0; row < rows_; ++row) AddBit(data.present, row, true);
    }
    if (value.null() || !data.present.empty())
      AddBit(data.present, rows_, !value.null());
    switch (schema_.columns[c].type) {
      case ColumnType::kText:
        LAMINA_CHECK(value.null() || value.kind() == Value::Kind::kText);
        data.texts.push_back(strings_->Intern(value.text()).value);
        break;
      case ColumnType::kReal:
        LAMINA_CHECK(value.kind() != Value::Kind::kText);
        data.reals.push_back(value.null() ? 0 : value.real());
        break;
      case ColumnType::kBool:
        LAMINA_CHECK(value.null() || value.kind() == Value::Kind::kBool);
        data.ints.push_back(value.integer());
        break;
      case ColumnType::kInt:
      case ColumnType::kTime:
        LAMINA_CHECK(value.null() || value.kind() == Value::Kind::kInt);
        data.ints.push_back(value.null() ? 0 : value.integer());
        break;
    }
  }
  ++rows_;
}

Value Table::At(size_t row, size_t column) const {
  if (IsNull(row, column)) return {};
  const ColumnData& data = data_[column];
  switch (schema_.columns[column].type) {
    case ColumnType::kText:
      return (*strings_)[StringId(data.texts[row])];
    case ColumnType::kReal:
      return data.reals[row];
    case ColumnType::kBool:
      return data.ints[row] != 0;
    case ColumnType::kInt:
    case ColumnType::kTime:
      return data.ints[row];
  }
  return {};
}

std::string_view Table::Text(uint32_t number) const {
  return (*strings_)[StringId(number)];
}

size_t Table::texts() const { return strings_->size(); }

int64_t Table::Sum(std::string_view column) const {
  const size_t c = schema_.IndexOf(column);
  const ColumnType type = schema_.columns[c].type;
  LAMINA_CHECK(type != ColumnType::kText && type != ColumnType::kReal);
  int64_t sum = 0;
  for (size_t row = 0; row < rows_; ++row) {
    if (!IsNull(row, c)) sum += data_[c].ints[row];
  }
  return sum;
}

void Table::Truncate(size_t rows) {
  if (rows >= rows_) return;
  for (ColumnData& data : data_) {
    if (!data.ints.empty()) data.ints.resize(rows);
    if (!data.reals.empty()) data.reals.resize(rows);
    if (!data.texts.empty()) data.texts.resize(rows);
    if (data.present.empty()) continue;
    data.present.resize((rows + 63) / 64);
    // What is added later finds its bits unset.
    if (rows % 64 != 0) data.present.back() &= (uint64_t{1} << rows % 64) - 1;
  }
  rows_ = rows;
}

void AppendCellText(std::string& out, const Table& table, size_t row,
                    size_t column) {
  const Value value = table.At(row, column);
  if (value.null()) return;
  switch (table.schema().columns[column].type) {
    case ColumnType::kText:
      out += value.text();
      break;
    case ColumnType::kInt:
      AppendInt(out, value.integer());
      break;
    case ColumnType::kReal:
      AppendNumber(out, value.real());
      break;
    case ColumnType::kBool:
      out += value.boolean() ? "True" : "False";
      break;
    case ColumnType::kTime:
      AppendMicroseconds(out, value.integer());
      break;
  }
}

std::string CellText(const Table& table, size_t row, size_t column) {
  std::string out;
  AppendCellText(out, table, row, column);
  return out;
}

TextCodes CodesOf(const Table& table, size_t column) {
  TextCodes out;
  const ColumnView view = table.View(column);
  // Tables share their texts among columns: not all of them are of this one.
  std::vector<int32_t> code_of(table.texts(), -1);
  out.codes.reserve(table.rows());
  for (size_t row = 0; row < table.rows(); ++row) {
    if (view.IsNull(row)) {
      out.codes.push_back(-1);
      continue;
    }
    int32_t& code = code_of[view.texts[row]];
    if (code < 0) {
      code = static_cast<int32_t>(out.texts.size());
      out.texts.push_back(view.texts[row]);
    }
    out.codes.push_back(code);
  }
  return out;
}

std::string UnitOfName(std::string_view column) {
  for (const std::string_view unit :
       {"bytes_per_s", "khz", "ns", "us", "bytes", "percent", "flops"}) {
    if (column == unit || column.ends_with("_" + std::string(unit)))
      return unit == "bytes_per_s" ? "bytes/s"
             : unit == "khz"       ? "kHz"
                                   : std::string(unit);
  }
  return "";
}

}  // namespace lamina
