// SPDX-License-Identifier: Apache-2.0
//
// The bytes of an input that are read and not yet used, to look at in place
// before using them. The offset of every byte in the unpacked input is known.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/status.h"

namespace lamina {

class ByteWindow {
 public:
  explicit ByteWindow(ByteSource* source) : source_(*source) {}

  // What stands in the window; valid until the window changes.
  std::string_view text() const {
    return {bytes_.data() + begin_, bytes_.size() - begin_};
  }
  // Of text()[0] in the unpacked input.
  uint64_t offset() const { return offset_; }
  // Nothing follows text().
  bool at_end() const { return at_end_; }
  // Nothing is left at all.
  bool empty() const { return at_end_ && text().empty(); }
  const ByteSource& source() const { return source_; }

  // Reads up to `bytes` more behind text(); false when there are none.
  Result<bool> Fill(size_t bytes);
  // Drops the first bytes of text().
  void Consume(size_t bytes);
  // Gives up the rest of the input.
  void Close();

  // For a caller with a buffer of its own, which saves a copy of every byte:
  // moves text() and then what follows it to `to`; fewer bytes than `size`
  // only at the end.
  Result<size_t> Take(char* to, size_t size);
  // Returns the last of the bytes that Take() moved.
  void PutBack(std::string_view rest);

 private:
  // Fewer bytes than `size` only at the end; does not move the offset.
  Result<size_t> ReadFully(char* to, size_t size);

  ByteSource& source_;
  std::vector<char> bytes_;
  size_t begin_ = 0;  // of text() in bytes_
  uint64_t offset_ = 0;
  bool at_end_ = false;
};

}  // namespace lamina
