// SPDX-License-Identifier: Apache-2.0
//
// Cuts a CSV file into chunks of whole rows, which any thread can read
// (csv_rows.h). Only the quotes are looked at: they say which ends of lines
// are ends of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/chunk.h"
#include "base/status.h"

namespace lamina {

// Finds the ends of rows in text that comes in pieces.
class CsvRowScanner {
 public:
  // One past the end of the last row that ends in `text`, which follows what
  // was scanned before; 0 when none does.
  size_t LastEnd(std::string_view text);
  // Of the first such row.
  size_t FirstEnd(std::string_view text);
  // The next text begins with a row.
  void Reset() { *this = CsvRowScanner(); }

 private:
  // What the next byte means.
  enum class At : uint8_t {
    kRow,     // it begins a row
    kField,   // it begins a field
    kPlain,   // it is part of one without quotes, or follows the closing one
    kQuoted,  // it stands in quotes
    kQuote,   // it follows a quote in quotes
  };
  template <class Row>
  void Scan(std::string_view text, Row row);
  At AfterPlain(std::string_view text, size_t begin) const;

  At at_ = At::kRow;
};

class CsvCutter {
 public:
  // A longer row is cut off there and counted as damage.
  static constexpr size_t kMaxRowBytes = size_t{16} << 20;

  explicit CsvCutter(std::unique_ptr<ByteSource> source);

  // The next chunk: text and offset; false at the end. Fails when the device
  // does.
  Result<bool> Next(Chunk& chunk);

  uint64_t offset() const { return window_.offset(); }
  // Offset of the first row that is too long.
  std::optional<uint64_t> damage() const { return damage_; }
  const ByteSource& source() const { return *source_; }

 private:
  Status SkipRow();

  std::unique_ptr<ByteSource> source_;
  ByteWindow window_;
  CsvRowScanner scanner_;
  // Grows from block to block: a short file does not pay for a long one.
  size_t block_bytes_;
  std::optional<uint64_t> damage_;
};

// Rows of CSV text (RFC 4180) that lies in memory; CsvCutter cuts files
// into such texts.

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
