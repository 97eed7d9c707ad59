// SPDX-License-Identifier: Apache-2.0
//
// Cuts a CSV file into chunks of whole rows, which any thread can read
// (csv_rows.h). Only the quotes are looked at: they say which ends of lines
// are ends of rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/byte_source.h"
#include "base/byte_window.h"
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

}  // namespace lamina
