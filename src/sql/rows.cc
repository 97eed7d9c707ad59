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
  constexpr double kMost = 9.2e18;
  const double real = value.real();
  if (!(std::abs(real) < kMost) || std::trunc(real) != real)
    return std::nullopt;
  return static_cast<int64_t>(real);
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

void Rows::OrderRows(Index& index, int column) const {
  index.ordered = true;
  uint32_t count = 0;
  bool integers = true;
  for (size_t row = 0; integers && row < size(); ++row) {
    const Value cell = Cell(row, column);
    if (cell.null()) continue;
    integers = IsInteger(cell);
    if (!integers) break;
    ++index.integers[cell.integer()].count;
    ++count;
  }
  if (integers) {
    // Counted; now each value gets its place, and each row its own in it.
    index.order.resize(count);
    uint32_t begin = 0;
    for (auto& [value, place] : index.integers) {
      place.begin = begin;
      begin += std::exchange(place.count, 0);
    }
    for (uint32_t row = 0; row < size(); ++row) {
      const Value cell = Cell(row, column);
      if (cell.null()) continue;
      auto& place = index.integers[cell.integer()];
      index.order[place.begin + place.count++] = row;
    }
    return;
  }
  index.integers.clear();
  for (uint32_t row = 0; row < size(); ++row) {
    if (!Cell(row, column).null()) index.order.push_back(row);
  }
  std::stable_sort(index.order.begin(), index.order.end(),
                   [&](uint32_t a, uint32_t b) {
                     return Compare(Cell(a, column), Cell(b, column)) < 0;
                   });
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
    if (!index.ordered) OrderRows(index, column);
    order = index.order;
    if (!index.integers.empty()) {
      const auto whole = WholeOf(value);
      if (!whole) return {};
      const auto found = index.integers.find(*whole);
      if (found == index.integers.end()) return {};
      return order.subspan(found->second.begin, found->second.count);
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

Value TableRows::Cell(size_t row, int column) const {
  const From from = columns_[static_cast<size_t>(column)];
  if (from.column < 0) return {};
  const Value value = table_->At(row, static_cast<size_t>(from.column));
  if (!from.as_us || value.null()) return value;
  return static_cast<double>(value.integer()) / 1000.0;
}

}  // namespace lamina::sql
