// SPDX-License-Identifier: Apache-2.0
#include "sql/rows.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace lamina::sql {
namespace {

int Rank(const Value& value) {
  if (value.null()) return 0;
  return value.kind() == Value::Kind::kText ? 2 : 1;
}

// Exact, also for integers that a double cannot hold.
long double Number(const Value& value) {
  return value.kind() == Value::Kind::kReal
             ? static_cast<long double>(value.real())
             : static_cast<long double>(value.integer());
}

bool IsInteger(const Value& cell) {
  return cell.kind() == Value::Kind::kInt || cell.kind() == Value::Kind::kBool;
}

// A number that an integer can be equal to.
std::optional<int64_t> WholeOf(const Value& value) {
  if (IsInteger(value)) return value.integer();
  constexpr double kEnd = 9223372036854775808.0;  // 2^63, the first too large
  const double real = value.real();
  if (!(real >= -kEnd && real < kEnd) || std::trunc(real) != real)
    return std::nullopt;
  return static_cast<int64_t>(real);
}

// Whether this row is one before which to ask about a stop.
bool Asks(size_t row) { return row % 65536 == 65535; }

absl::string_view TextKey(const Value& cell) {
  return {cell.text().data(), cell.text().size()};
}

}  // namespace

int Compare(const Value& a, const Value& b) {
  if (a.kind() == Value::Kind::kInt && b.kind() == Value::Kind::kInt)
    return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  const int rank_a = Rank(a), rank_b = Rank(b);
  if (rank_a != rank_b) return rank_a < rank_b ? -1 : 1;
  if (rank_a == 0) return 0;
  if (rank_a == 2) {
    const int order = a.text().compare(b.text());
    return order < 0 ? -1 : order > 0;
  }
  const long double x = Number(a), y = Number(b);
  return x < y ? -1 : x > y;
}

Rows::Index& Rows::IndexOf(int column) const { return indexes_[column]; }

bool Rows::Ascending(int column) const {
  const std::lock_guard lock(mutex_);
  Index& index = IndexOf(column);
  if (index.ascending < 0) {
    index.ascending = 1;
    index.counts = true;
    int64_t last = INT64_MIN;
    for (size_t row = 0; row < size(); ++row) {
      const Value value = Cell(row, column);
      if (value.kind() != Value::Kind::kInt || value.integer() < last) {
        index.ascending = 0;
        break;
      }
      last = value.integer();
      index.counts &= last == static_cast<int64_t>(row);
    }
  }
  return index.ascending == 1;
}

bool Rows::Counts(int column) const {
  const std::lock_guard lock(mutex_);
  return IndexOf(column).counts;
}

bool Rows::WorthIndex(int column) const {
  const std::lock_guard lock(mutex_);
  return std::exchange(IndexOf(column).asked, true);
}

bool Rows::HashTexts(Index& index, int column, Stop stop) const {
  for (size_t row = 0; row < size(); ++row) {
    if (Asks(row) && stop()) {
      index.texts.clear();
      return false;
    }
    const Value cell = Cell(row, column);
    if (cell.kind() == Value::Kind::kText)
      index.texts[TextKey(cell)].push_back(static_cast<uint32_t>(row));
  }
  index.hashed = true;
  return true;
}

bool Rows::OrderRows(Index& index, int column, Stop stop) const {
  switch (OrderIntegers(index, column, stop)) {
    case Integers::kStopped:
      return false;
    case Integers::kIndexed:
      break;
    case Integers::kOthers:
      for (uint32_t row = 0; row < size(); ++row) {
        if (!IsNull(Cell(row, column))) index.order.push_back(row);
      }
      std::stable_sort(index.order.begin(), index.order.end(),
                       [&](uint32_t a, uint32_t b) {
                         return Compare(Cell(a, column), Cell(b, column)) < 0;
                       });
  }
  index.ordered = true;
  return true;
}

Rows::Integers Rows::OrderIntegers(Index& index, int column, Stop stop) const {
  // A slot per value is large: only where few values have many rows.
  constexpr size_t kFew = 1024, kRowsOfValue = 4;
  absl::flat_hash_map<int64_t, Index::Place> places;
  uint32_t count = 0;
  bool few = true;
  for (size_t row = 0; row < size(); ++row) {
    if (Asks(row) && stop()) return Integers::kStopped;
    const Value cell = Cell(row, column);
    if (cell.null()) continue;
    if (!IsInteger(cell)) return Integers::kOthers;
    ++count;
    if (!few) continue;
    ++places[cell.integer()].count;
    few = places.size() < kFew || places.size() < count / kRowsOfValue;
  }
  if (!few) {
    places = {};
    return SortIntegers(index, column, stop) ? Integers::kIndexed
                                             : Integers::kStopped;
  }
  // Counted; now each value gets its place, and each row its own in it.
  index.order.resize(count);
  uint32_t begin = 0;
  for (auto& [value, place] : places) {
    place.begin = begin;
    begin += std::exchange(place.count, 0);
  }
  for (uint32_t row = 0; row < size(); ++row) {
    const Value cell = Cell(row, column);
    if (cell.null()) continue;
    auto& place = places[cell.integer()];
    index.order[place.begin + place.count++] = row;
  }
  index.integers = std::move(places);
  return Integers::kIndexed;
}

bool Rows::SortIntegers(Index& index, int column, Stop stop) const {
  std::vector<std::pair<int64_t, uint32_t>> cells;
  for (uint32_t row = 0; row < size(); ++row) {
    if (Asks(row) && stop()) return false;
    const Value cell = Cell(row, column);
    if (!cell.null()) cells.emplace_back(cell.integer(), row);
  }
  std::sort(cells.begin(), cells.end());
  index.order.reserve(cells.size());
  index.sorted.reserve(cells.size());
  for (const auto& [value, row] : cells) {
    index.sorted.push_back(value);
    index.order.push_back(row);
  }
  return true;
}

std::span<const uint32_t> Rows::Equal(int column, const Value& value,
                                      std::vector<uint32_t>& room,
                                      Stop stop) const {
  room.clear();
  if (value.null()) return room;
  const bool text = value.kind() == Value::Kind::kText;
  if (!text && Ascending(column)) {
    if (value.kind() == Value::Kind::kInt && Counts(column)) {
      const auto row = static_cast<uint64_t>(value.integer());
      if (row < size()) room.push_back(static_cast<uint32_t>(row));
      return room;
    }
    size_t low = 0, high = size();
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (Compare(Cell(middle, column), value) < 0) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    for (; low < size() && Compare(Cell(low, column), value) == 0; ++low)
      room.push_back(static_cast<uint32_t>(low));
    return room;
  }
  std::span<const uint32_t> order;
  {
    // What is made here never changes again, and maps keep their nodes.
    const std::lock_guard lock(mutex_);
    Index& index = IndexOf(column);
    if (text) {
      if (!index.hashed && !HashTexts(index, column, stop)) return {};
      const auto found = index.texts.find(TextKey(value));
      return found == index.texts.end() ? std::span<const uint32_t>()
                                        : found->second;
    }
    if (!index.ordered && !OrderRows(index, column, stop)) return {};
    order = index.order;
    if (!index.integers.empty()) {
      const auto whole = WholeOf(value);
      if (!whole) return {};
      const auto found = index.integers.find(*whole);
      if (found == index.integers.end()) return {};
      return order.subspan(found->second.begin, found->second.count);
    }
    if (!index.sorted.empty()) {
      const auto whole = WholeOf(value);
      if (!whole) return {};
      const auto [low, high] =
          std::equal_range(index.sorted.begin(), index.sorted.end(), *whole);
      return order.subspan(static_cast<size_t>(low - index.sorted.begin()),
                           static_cast<size_t>(high - low));
    }
  }
  const auto low = std::partition_point(
      order.begin(), order.end(),
      [&](uint32_t row) { return Compare(Cell(row, column), value) < 0; });
  auto high = low;
  while (high != order.end() && Compare(Cell(*high, column), value) == 0)
    ++high;
  return {low, high};
}

TableRows::TableRows(std::shared_ptr<const Table> table,
                     const std::vector<From>& columns)
    : table_(std::move(table)) {
  for (const From from : columns) Add(from);
}

TableRows::TableRows(std::shared_ptr<const Table> table)
    : table_(std::move(table)) {
  for (size_t c = 0; c < table_->columns(); ++c)
    Add({static_cast<int>(c), false});
}

void TableRows::Add(From from) {
  Place& place = places_.emplace_back();
  if (from.column < 0) return;
  const auto column = static_cast<size_t>(from.column);
  place.cells = table_->View(column);
  place.type = table_->schema().columns[column].type;
  place.known = true;
  place.as_us = from.as_us;
}

Value TableRows::Cell(size_t row, int column) const {
  const Place& place = places_[static_cast<size_t>(column)];
  if (!place.known || place.cells.IsNull(row)) return {};
  switch (place.type) {
    case ColumnType::kText:
      return table_->Text(place.cells.texts[row]);
    case ColumnType::kReal:
      return place.cells.reals[row];
    case ColumnType::kBool:
      return place.cells.ints[row] != 0;
    case ColumnType::kInt:
    case ColumnType::kTime:
      break;
  }
  const int64_t cell = place.cells.ints[row];
  return place.as_us ? Value(static_cast<double>(cell) / 1000.0) : Value(cell);
}

std::optional<Rows::Direct> TableRows::DirectOf(int column) const {
  const Place& place = places_[static_cast<size_t>(column)];
  if (!place.known || place.as_us || place.type == ColumnType::kReal)
    return std::nullopt;
  return Direct{place.cells,
                place.type == ColumnType::kText ? table_.get() : nullptr};
}

}  // namespace lamina::sql
