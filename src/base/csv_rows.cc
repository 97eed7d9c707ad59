// SPDX-License-Identifier: Apache-2.0
#include "base/csv_rows.h"

#include <algorithm>

namespace lamina {

bool CsvRows::Next() {
  fields_.clear();
  copied_.clear();
  // Empty lines.
  while (pos_ < text_.size() && (text_[pos_] == '\n' || text_[pos_] == '\r'))
    ++pos_;
  begin_ = pos_;
  if (pos_ == text_.size()) return false;
  while (ReadField()) {
  }
  return true;
}

// False for the last field of the row.
bool CsvRows::ReadField() {
  const bool quoted = pos_ < text_.size() && text_[pos_] == '"';
  const std::string_view field = quoted ? ReadQuoted() : ReadPlain();
  if (fields_.size() < kMaxFields) {
    fields_.push_back(field);
  } else {
    Damaged();
  }
  if (pos_ == text_.size()) return false;
  return text_[pos_++] == ',';
}

// Most quoted fields end with their second quote.
std::string_view CsvRows::ReadQuoted() {
  const size_t begin = pos_ + 1;
  const size_t end = text_.find('"', begin);
  if (end == std::string_view::npos || !Ends(end + 1)) return ReadMixed(pos_);
  pos_ = end + 1;
  return text_.substr(begin, end - begin);
}

std::string_view CsvRows::ReadPlain() {
  const size_t begin = pos_;
  size_t end = begin;
  while (!Ends(end) && text_[end] != '\r') ++end;
  pos_ = end;
  if (Ends(end)) return text_.substr(begin, end - begin);
  // A return that ends the row.
  if (Ends(end + 1)) {
    pos_ = end + 1;
    return text_.substr(begin, end - begin);
  }
  return ReadMixed(begin);
}

// Quotes in quotes, text behind them, returns: the field is put together.
std::string_view CsvRows::ReadMixed(size_t begin) {
  pos_ = begin;
  copied_.reserve(text_.size() - begin_);
  const size_t copied = copied_.size();
  if (text_[pos_] == '"') {
    bool open = true;
    for (++pos_; open;) {
      const size_t end = std::min(text_.find('"', pos_), text_.size());
      copied_.append(text_, pos_, end - pos_);
      pos_ = std::min(end + 1, text_.size());
      if (end == text_.size()) Damaged();
      open = end < text_.size() && pos_ < text_.size() && text_[pos_] == '"';
      if (open) copied_ += text_[pos_++];
    }
  }
  for (; !Ends(pos_); ++pos_) {
    if (text_[pos_] != '\r') copied_ += text_[pos_];
  }
  return std::string_view(copied_).substr(copied);
}

}  // namespace lamina
