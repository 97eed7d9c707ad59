// SPDX-License-Identifier: Apache-2.0
//
// What a table holds once it is asked for: cells by row and column, read where
// they lie. Immutable and shared by all queries; texts of cells live as long as
// the rows.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>
#include <absl/strings/string_view.h>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "lamina/table.h"

namespace lamina::sql {

class Rows {
 public:
  virtual ~Rows() = default;

  virtual size_t size() const = 0;
  virtual Value Cell(size_t row, int column) const = 0;
  // The cells of a column where they lie, its texts as numbers of `texts`; none
  // where they are made when they are asked for.
  struct Direct {
    ColumnView cells;
    const Table* texts = nullptr;  // of a column of texts, else null
  };
  virtual std::optional<Direct> DirectOf(int column) const {
    (void)column;
    return std::nullopt;
  }
  // Called before cells of these columns (a bit each; 63: all others) are read.
  virtual Status Prepare(uint64_t columns) const {
    (void)columns;
    return {};
  }

  // Asked now and then while an index is made; true ends that.
  using Stop = absl::FunctionRef<bool()>;

  // Rows in which a column has this value, rising. An index over the column is
  // made on first use and kept. They stand in the index, which lives as long
  // as the rows, or in `room`. None when stopped, and nothing is kept then.
  std::span<const uint32_t> Equal(int column, const Value& value,
                                  std::vector<uint32_t>& room, Stop stop) const;
  // Whether an index of the texts of a column pays for one look-up: from the
  // second time on that it is asked.
  bool WorthIndex(int column) const;
  // Whether an integer column never falls and has no nulls.
  bool Ascending(int column) const;

 private:
  struct Index {
    // Without nulls, and rising where values are equal: by value, or by the
    // place of integers.
    std::vector<uint32_t> order;
    // Where all are integers, of which many are equal.
    struct Place {
      uint32_t begin = 0, count = 0;  // in `order`
    };
    absl::flat_hash_map<int64_t, Place> integers;
    // Where all are integers, nearly all distinct: those of `order`.
    std::vector<int64_t> sorted;
    // Of texts instead: their rows, rising.
    absl::flat_hash_map<absl::string_view, std::vector<uint32_t>> texts;
    int ascending = -1;   // -1: not known yet
    bool counts = false;  // ascending, and the value is the row
    bool ordered = false;
    bool hashed = false;
    bool asked = false;  // by WorthIndex
  };
  Index& IndexOf(int column) const;
  bool Counts(int column) const;  // of one that is known to ascend
  // False when stopped; the index is as before then.
  bool HashTexts(Index& index, int column, Stop stop) const;
  bool OrderRows(Index& index, int column, Stop stop) const;
  enum class Integers { kIndexed, kOthers, kStopped };  // kOthers: not all are
  Integers OrderIntegers(Index& index, int column, Stop stop) const;
  bool SortIntegers(Index& index, int column, Stop stop) const;

  mutable std::mutex mutex_;
  mutable std::map<int, Index> indexes_;
};

// Rows of a model `M` by functions, one per column.
template <class M>
class FunctionRows : public Rows {
 public:
  using Cells = std::vector<Value (*)(const M&, size_t row)>;
  FunctionRows(M model, size_t count, Cells cells)
      : model_(std::move(model)), count_(count), cells_(std::move(cells)) {}
  size_t size() const override { return count_; }
  Value Cell(size_t row, int column) const override {
    return cells_[static_cast<size_t>(column)](model_, row);
  }

 protected:
  M model_;
  size_t count_;
  Cells cells_;
};

// Rows of a finished table; `column` gives the column of the table and whether
// a time is shown as microseconds. -1: the table lacks it.
class TableRows : public Rows {
 public:
  struct From {
    int column = -1;
    bool as_us = false;
  };
  TableRows(std::shared_ptr<const Table> table,
            const std::vector<From>& columns);
  // All columns as they are.
  explicit TableRows(std::shared_ptr<const Table> table);
  size_t size() const override { return table_ ? table_->rows() : 0; }
  Value Cell(size_t row, int column) const override;
  std::optional<Direct> DirectOf(int column) const override;

 private:
  struct Place {
    ColumnView cells;
    ColumnType type = ColumnType::kInt;
    bool known = false;
    bool as_us = false;
  };
  void Add(From from);

  std::shared_ptr<const Table> table_;
  std::vector<Place> places_;  // by column
};

// Whether SQL sees null: of reals those that are not finite as well.
inline bool IsNull(const Value& cell) {
  return cell.null() ||
         (cell.kind() == Value::Kind::kReal && !std::isfinite(cell.real()));
}

// Order of cells of one type: nulls, numbers, texts. NaN has no place in it.
int Compare(const Value& a, const Value& b);

}  // namespace lamina::sql
