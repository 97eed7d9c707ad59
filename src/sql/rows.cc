// SPDX-License-Identifier: Apache-2.0
#include "sql/rows.h"

#include <algorithm>
#include <numeric>

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

}  // namespace

int Compare(const Value& a, const Value& b) {
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
    int64_t last = INT64_MIN;
    for (size_t row = 0; row < size(); ++row) {
      const Value value = Cell(row, column);
      if (value.kind() != Value::Kind::kInt || value.integer() < last) {
        index.ascending = 0;
        break;
      }
      last = value.integer();
    }
  }
  return index.ascending == 1;
}

std::vector<uint32_t> Rows::Equal(int column, const Value& value) const {
  std::vector<uint32_t> out;
  if (value.null()) return out;
  const bool ascending =
      value.kind() != Value::Kind::kText && Ascending(column);
  const auto below = [&](size_t row) {
    return Compare(Cell(row, column), value) < 0;
  };
  if (ascending) {
    size_t low = 0, high = size();
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (below(middle)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    for (; low < size() && Compare(Cell(low, column), value) == 0; ++low)
      out.push_back(static_cast<uint32_t>(low));
    return out;
  }
  const bool text = value.kind() == Value::Kind::kText;
  const std::vector<uint32_t>* order = nullptr;
  {
    const std::lock_guard lock(mutex_);
    Index& index = IndexOf(column);
    const auto view = [](const Value& cell) {
      return absl::string_view(cell.text().data(), cell.text().size());
    };
    if (text) {
      if (!index.hashed) {
        for (size_t row = 0; row < size(); ++row) {
          const Value cell = Cell(row, column);
          if (cell.kind() == Value::Kind::kText)
            index.texts[view(cell)].push_back(static_cast<uint32_t>(row));
        }
        index.hashed = true;
      }
      const auto found = index.texts.find(view(value));
      return found == index.texts.end() ? out : found->second;
    }
    if (!index.sorted) {
      for (size_t row = 0; row < size(); ++row) {
        if (!Cell(row, column).null())
          index.order.push_back(static_cast<uint32_t>(row));
      }
      std::stable_sort(index.order.begin(), index.order.end(),
                       [&](uint32_t a, uint32_t b) {
                         return Compare(Cell(a, column), Cell(b, column)) < 0;
                       });
      index.sorted = true;
    }
    order = &index.order;  // never changes again, and maps keep their nodes
  }
  auto it = std::partition_point(order->begin(), order->end(), below);
  for (; it != order->end() && Compare(Cell(*it, column), value) == 0; ++it)
    out.push_back(*it);
  return out;
}

Value TableRows::Cell(size_t row, int column) const {
  const From from = columns_[static_cast<size_t>(column)];
  if (from.column < 0) return {};
  const Value value = table_->At(row, static_cast<size_t>(from.column));
  if (!from.as_us || value.null()) return value;
  return static_cast<double>(value.integer()) / 1000.0;
}

}  // namespace lamina::sql
