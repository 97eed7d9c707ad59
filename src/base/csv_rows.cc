// SPDX-License-Identifier: Apache-2.0

#include "base/csv_rows.h"

#include <algorithm>

namespace lamina {

namespace {

constexpr size_t kFirstBlockBytes = 4096;
constexpr size_t kBlockBytes = size_t{1} << 20;
constexpr size_t kBlockGrowth = 4;
constexpr size_t kNone = std::string_view::npos;

}  // namespace

// What follows text[begin, size), which has no quotes that begin a field.
CsvRowScanner::At CsvRowScanner::AfterPlain(std::string_view text,
                                            size_t begin) const {
  // Returns and empty lines at the start of a row belong to no field.
  size_t end = text.size();
  while (end > begin && text[end - 1] == '\r') --end;
  if (end > begin && text[end - 1] == '\n') return At::kRow;
  if (end == begin && at_ == At::kRow) return At::kRow;
  if (text.size() == begin) return at_;
  return text.back() == ',' ? At::kField : At::kPlain;
}

// Calls row(end) for ends of rows in `text`: of each part without quotes, the
// part; it returns false to stop.
template <class Row>
void CsvRowScanner::Scan(std::string_view text, Row row) {
  size_t pos = 0;
  while (pos < text.size()) {
    if (at_ == At::kQuote) {
      if (text[pos] == '"') {
        at_ = At::kQuoted;
        ++pos;
      } else {
        at_ = At::kPlain;
      }
    } else if (at_ == At::kQuoted) {
      const size_t quote = text.find('"', pos);
      if (quote == kNone) return;
      at_ = At::kQuote;
      pos = quote + 1;
    } else {
      const size_t quote = std::min(text.find('"', pos), text.size());
      if (!row(pos, quote)) return;
      at_ = AfterPlain(text.substr(0, quote), pos);
      if (quote == text.size()) return;
      // A quote inside a field is part of it.
      at_ = at_ == At::kPlain ? At::kPlain : At::kQuoted;
      pos = quote + 1;
    }
  }
}

size_t CsvRowScanner::LastEnd(std::string_view text) {
  size_t last = 0;
  Scan(text, [&](size_t begin, size_t end) {
    const size_t line = text.substr(begin, end - begin).rfind('\n');
    if (line != kNone) last = begin + line + 1;
    return true;
  });
  return last;
}

size_t CsvRowScanner::FirstEnd(std::string_view text) {
  size_t first = 0;
  Scan(text, [&](size_t begin, size_t end) {
    const size_t line = text.substr(begin, end - begin).find('\n');
    if (line != kNone) first = begin + line + 1;
    return line == kNone;
  });
  return first;
}

CsvCutter::CsvCutter(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)),
      window_(source_.get()),
      block_bytes_(kFirstBlockBytes) {}

Result<bool> CsvCutter::Next(Chunk& chunk) {
  size_t capacity = block_bytes_;
  block_bytes_ = std::min(block_bytes_ * kBlockGrowth, kBlockBytes);
  chunk.offset = window_.offset();
  scanner_.Reset();
  size_t size = 0;
  while (true) {
    if (chunk.buffer.size() < capacity) chunk.buffer.resize(capacity);
    char* const data = chunk.buffer.data();
    LAMINA_ASSIGN(const size_t got, window_.Take(data + size, capacity - size));
    size_t keep = scanner_.LastEnd({data + size, got});
    if (keep > 0) keep += size;
    size += got;
    if (window_.empty()) keep = size;
    if (keep > 0 || size == 0) {
      window_.PutBack({data + keep, size - keep});
      chunk.text = {data, keep};
      return keep > 0;
    }
    if (size >= kMaxRowBytes) {
      if (!damage_) damage_ = chunk.offset;
      LAMINA_TRY(SkipRow());
      chunk.text = {data, kMaxRowBytes};
      return true;
    }
    capacity = std::min(size * 2, kMaxRowBytes);
  }
}

// Past the end of the row that is being scanned.
Status CsvCutter::SkipRow() {
  while (true) {
    if (window_.text().empty()) {
      LAMINA_ASSIGN(const bool more, window_.Fill(kBlockBytes));
      if (!more) return {};
    }
    const size_t end = scanner_.FirstEnd(window_.text());
    window_.Consume(end > 0 ? end : window_.text().size());
    if (end > 0) return {};
  }
}

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
