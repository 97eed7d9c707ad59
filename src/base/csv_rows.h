// SPDX-License-Identifier: Apache-2.0
//
// Rows of CSV text (RFC 4180) that lies in memory; csv_cutter.h cuts files
// into such texts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

class CsvRows {
 public:
  // Fields of a row behind these are dropped and counted as damage.
  static constexpr size_t kMaxFields = 4096;

  // The text must outlive the rows.
  explicit CsvRows(std::string_view text) : text_(text) {}

  // The next row that is not empty; false at the end.
  bool Next();

  // Of the row, valid until the next call.
  const std::vector<std::string_view>& fields() const { return fields_; }
  // Field `index`, empty when the row is shorter.
  std::string_view Field(int index) const {
    return index >= 0 && static_cast<size_t>(index) < fields_.size()
               ? fields_[static_cast<size_t>(index)]
               : std::string_view();
  }
  // Of the row's first byte in the text, and of what follows the row.
  size_t begin() const { return begin_; }
  size_t end() const { return pos_; }
  // Where the first row begins that has too many fields or ends, with the
  // text, inside a quoted one.
  std::optional<size_t> damage() const { return damage_; }

 private:
  bool ReadField();
  void Damaged() {
    if (!damage_) damage_ = begin_;
  }
  std::string_view ReadQuoted();
  std::string_view ReadPlain();
  std::string_view ReadMixed(size_t begin);
  bool Ends(size_t pos) const {
    return pos == text_.size() || text_[pos] == ',' || text_[pos] == '\n';
  }

  std::string_view text_;
  size_t pos_ = 0;
  size_t begin_ = 0;
  std::vector<std::string_view> fields_;
  // Fields of the row that do not stand in the text as they are; it has room
  // for all that can come, so that it never moves.
  std::string copied_;
  std::optional<size_t> damage_;
};

}  // namespace lamina
