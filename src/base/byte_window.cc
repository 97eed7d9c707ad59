// SPDX-License-Identifier: Apache-2.0
#include "base/byte_window.h"

#include <algorithm>

namespace lamina {

Result<size_t> ByteWindow::ReadFully(char* to, size_t size) {
  size_t have = 0;
  while (have < size && !at_end_) {
    LAMINA_ASSIGN(const size_t got, source_.Read(to + have, size - have));
    at_end_ = got == 0;
    have += got;
  }
  return have;
}

Result<bool> ByteWindow::Fill(size_t bytes) {
  if (at_end_) return false;
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(begin_));
  begin_ = 0;
  const size_t old_size = bytes_.size();
  bytes_.resize(old_size + bytes);
  LAMINA_ASSIGN(const size_t got, ReadFully(bytes_.data() + old_size, bytes));
  bytes_.resize(old_size + got);
  return got > 0;
}

void ByteWindow::Consume(size_t bytes) {
  begin_ += bytes;
  offset_ += bytes;
}

void ByteWindow::Close() {
  Consume(text().size());
  at_end_ = true;
}

size_t ByteWindow::Take(char* to) {
  const std::string_view all = text();
  std::copy(all.begin(), all.end(), to);
  Consume(all.size());
  return all.size();
}

Result<size_t> ByteWindow::Read(char* to, size_t size) {
  LAMINA_ASSIGN(const size_t got, ReadFully(to, size));
  offset_ += got;
  return got;
}

void ByteWindow::PutBack(std::string_view rest) {
  bytes_.assign(rest.begin(), rest.end());
  begin_ = 0;
  offset_ -= rest.size();
}

}  // namespace lamina
