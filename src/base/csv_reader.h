// SPDX-License-Identifier: Apache-2.0
//
// Rows of a CSV file (RFC 4180), front to back, in bounded memory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"

namespace lamina {

class CsvReader {
 public:
  // A longer row is cut off there and counted in damage().
  static constexpr size_t kMaxRowBytes = size_t{16} << 20;
  // Fields behind these are dropped and counted likewise.
  static constexpr size_t kMaxFields = 4096;

  explicit CsvReader(std::unique_ptr<ByteSource> source);

  // The next row that is not empty; false at the end. Fails when the device
  // does.
  Result<bool> Next();

  // Of the row, valid until the next call.
  const std::vector<std::string_view>& fields() const { return fields_; }
  // Field `index`, empty when the row is shorter.
  std::string_view Field(int index) const {
    return index >= 0 && static_cast<size_t>(index) < fields_.size()
               ? fields_[static_cast<size_t>(index)]
               : std::string_view();
  }
  // Of the first byte of the row.
  uint64_t offset() const { return row_offset_; }
  uint64_t bytes() const { return offset_; }
  // The data ended inside a quoted field, or a row was too long.
  bool damaged() const { return damaged_; }
  const ByteSource& source() const { return *source_; }

 private:
  // The next byte, -1 at the end and when reading fails.
  int Peek();
  bool Fill();
  void Skip(size_t bytes) {
    pos_ += bytes;
    offset_ += bytes;
  }
  // What is in the buffer up to the first byte that `ends`.
  template <class Ends>
  std::string_view Run(Ends ends) const;
  bool ReadField();
  void ReadQuoted(bool kept);
  void Add(std::string_view text, bool kept);

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  size_t pos_ = 0;
  size_t end_ = 0;
  uint64_t offset_ = 0;
  uint64_t row_offset_ = 0;
  std::string row_;           // the fields, one behind the other
  std::vector<size_t> ends_;  // of the fields in row_
  std::vector<std::string_view> fields_;
  bool damaged_ = false;
  std::optional<Error> error_;
};

}  // namespace lamina
