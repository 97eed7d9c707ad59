// SPDX-License-Identifier: Apache-2.0
//
// Rows of a database by their id, as compact as an array: ids nearly always
// count up without gaps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace lamina::ingest {

template <class T>
class IdTable {
 public:
  void Add(int64_t id, T value) {
    if (!rows_.empty() && id < rows_.back().id) sorted_ = false;
    rows_.push_back({id, std::move(value)});
  }
  void Reserve(size_t rows) { rows_.reserve(rows); }
  // Rows of another table, which is empty then, behind those of this one.
  void Append(IdTable&& other) {
    sorted_ = sorted_ && other.sorted_ &&
              (rows_.empty() || other.rows_.empty() ||
               rows_.back().id <= other.rows_.front().id);
    rows_.insert(rows_.end(), std::make_move_iterator(other.rows_.begin()),
                 std::make_move_iterator(other.rows_.end()));
    other = IdTable();
  }
  // Call when all rows are there. Of equal ids the first counts.
  void Finish() {
    if (!sorted_) {
      std::stable_sort(rows_.begin(), rows_.end(),
                       [](const Row& a, const Row& b) { return a.id < b.id; });
    }
    sorted_ = true;
  }
  // Null when there is no such row.
  const T* Find(int64_t id) const {
    const size_t at = Place(id);
    return at < rows_.size() ? &rows_[at].value : nullptr;
  }
  // Where a row stands in the order of ids; size() when there is none.
  size_t Place(int64_t id) const {
    if (rows_.empty() || id < rows_.front().id || id > rows_.back().id)
      return rows_.size();
    const auto guess =
        static_cast<uint64_t>(id) - static_cast<uint64_t>(rows_.front().id);
    if (guess < rows_.size() && rows_[guess].id == id &&
        (guess == 0 || rows_[guess - 1].id != id))
      return guess;
    const auto it = std::lower_bound(
        rows_.begin(), rows_.end(), id,
        [](const Row& row, int64_t key) { return row.id < key; });
    return it != rows_.end() && it->id == id
               ? static_cast<size_t>(it - rows_.begin())
               : rows_.size();
  }
  const T& at(size_t place) const { return rows_[place].value; }
  size_t size() const { return rows_.size(); }

 private:
  struct Row {
    int64_t id;
    T value;
  };
  std::vector<Row> rows_;
  bool sorted_ = true;
};

}  // namespace lamina::ingest
