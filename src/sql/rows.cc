// SPDX-License-Identifier: Apache-2.0
#include "sql/rows.h"

#include <algorithm>
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

void Rows::HashTexts(Index& index, int column) const {
  for (size_t row = 0; row < size(); ++row) {
    const Value cell = Cell(row, column);
    if (cell.kind() == Value::Kind::kText)
      index.texts[TextKey(cell)].push_back(static_cast<uint32_t>(row));
  }
  index.hashed = true;
}

void Rows::SortRows(Index& index, int column) const {
  std::vector<std::pair<int64_t, uint32_t>> numbers;
  bool integers = true;
  for (uint32_t row = 0; row < size(); ++row) {
    const Value cell = Cell(row, column);
    if (cell.null()) continue;
    integers &= cell.kind() == Value::Kind::kInt;
    numbers.emplace_back(cell.integer(), row);
  }
  if (integers) std::sort(numbers.begin(), numbers.end());
  for (const auto& [value, row] : numbers) {
    index.order.push_back(row);
    if (integers) index.numbers.push_back(value);
  }
  if (!integers) {
    std::stable_sort(index.order.begin(), index.order.end(),
                     [&](uint32_t a, uint32_t b) {
                       return Compare(Cell(a, column), Cell(b, column)) < 0;
                     });
  }
  index.sorted = true;
}

std::span<const uint32_t> Rows::Equal(int column, const Value& value,
                                      std::vector<uint32_t>& room) const {
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
  std::span<const int64_t> numbers;
  {
    // What is made here never changes again, and maps keep their nodes.
    const std::lock_guard lock(mutex_);
    Index& index = IndexOf(column);
    if (text) {
      if (!index.hashed) HashTexts(index, column);
      const auto found = index.texts.find(TextKey(value));
      return found == index.texts.end() ? std::span<const uint32_t>()
                                        : found->second;
    }
    if (!index.sorted) SortRows(index, column);
    order = index.order;
    numbers = index.numbers;
  }
  if (!numbers.empty() && value.kind() == Value::Kind::kInt) {
    const auto [from, to] =
        std::equal_range(numbers.begin(), numbers.end(), value.integer());
    return order.subspan(static_cast<size_t>(from - numbers.begin()),
                         static_cast<size_t>(to - from));
  }
  const auto low = std::partition_point(
      order.begin(), order.end(),
      [&](uint32_t row) { return Compare(Cell(row, column), value) < 0; });
  auto high = low;
  while (high != order.end() && Compare(Cell(*high, column), value) == 0)
    ++high;
  return {low, high};
}

Value TableRows::Cell(size_t row, int column) const {
  const From from = columns_[static_cast<size_t>(column)];
  if (from.column < 0) return {};
  const Value value = table_->At(row, static_cast<size_t>(from.column));
  if (!from.as_us || value.null()) return value;
  return static_cast<double>(value.integer()) / 1000.0;
}

}  // namespace lamina::sql
