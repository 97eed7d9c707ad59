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

Result<size_t> ByteWindow::Take(char* to, size_t size) {
  const std::string_view held = text().substr(0, size);
  std::copy(held.begin(), held.end(), to);
  Consume(held.size());
  LAMINA_ASSIGN(const size_t got,
                ReadFully(to + held.size(), size - held.size()));
  offset_ += got;
  return held.size() + got;
}

void ByteWindow::PutBack(std::string_view rest) {
  offset_ -= rest.size();
  // Where text() is left, nothing was read behind it: the bytes still stand
  // in front of it. Not copying them keeps many short takes linear.
  if (!text().empty()) {
    begin_ -= rest.size();
    return;
  }
  bytes_.assign(rest.begin(), rest.end());
  begin_ = 0;
}

}  // namespace lamina
