// SPDX-License-Identifier: Apache-2.0
//
// Columns of numbers in the form that a page reads: little-endian integers of
// the smallest width that holds them (or doubles), cut into byte planes (all
// first bytes, all second bytes, ...), gzipped, base64. Planes of slowly
// growing numbers hold long runs, so sorted times cost about two bytes each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::render {

// How a page finds and reads a column of a block.
struct PackedColumn {
  std::string name;
  int width = 1;       // bytes: 1, 2 or 4; 8 is a double
  bool delta = false;  // differences to the row before, zigzag
  // Rows whose number has more than 32 bits: (row, number).
  std::vector<std::pair<uint64_t, int64_t>> wide;
};

// Columns of one length, unpacked and read together.
class Block {
 public:
  Block(std::string name, size_t rows) : name_(std::move(name)), rows_(rows) {}

  // Numbers beyond 2^53 lose their last digits in a page: see Exact().
  void Add(std::string name, std::span<const int64_t> values,
           bool delta = false);
  void AddReals(std::string name, std::span<const double> values);
  // Bytes as they are; only for a block of its own.
  void AddBytes(std::string name, std::string_view bytes);

  const std::string& name() const { return name_; }
  size_t rows() const { return rows_; }
  const std::string& raw() const { return raw_; }
  const std::vector<PackedColumn>& columns() const { return columns_; }

 private:
  std::string name_;
  size_t rows_;
  std::string raw_;  // planes of all columns
  std::vector<PackedColumn> columns_;
};

// True if a double holds every integer up to this one.
constexpr bool Exact(int64_t value) {
  constexpr int64_t kMost = int64_t{1} << 53;
  return value >= -kMost && value <= kMost;
}

// A gzip member of `bytes` (RFC 1952), so that its reader checks a CRC-32.
// Large inputs are cut into parts that threads compress on their own; the
// result does not depend on their number.
std::string Gzip(std::string_view bytes, int threads);
std::string Base64(std::string_view bytes);

}  // namespace lamina::render
