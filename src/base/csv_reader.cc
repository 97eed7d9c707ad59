// SPDX-License-Identifier: Apache-2.0
#include "base/csv_reader.h"

namespace lamina {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr int kEnd = -1;

}  // namespace

CsvReader::CsvReader(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), buffer_(kBufferBytes) {}

bool CsvReader::Fill() {
  auto got = source_->Read(buffer_.data(), buffer_.size());
  if (!got) {
    error_ = std::move(got).error();
    return false;
  }
  pos_ = 0;
  end_ = *got;
  return end_ > 0;
}

int CsvReader::Peek() {
  if (pos_ == end_ && !Fill()) return kEnd;
  return static_cast<unsigned char>(buffer_[pos_]);
}

template <class Ends>
std::string_view CsvReader::Run(Ends ends) const {
  const char* const begin = buffer_.data() + pos_;
  const char* const end = buffer_.data() + end_;
  const char* at = begin;
  while (at < end && !ends(*at)) ++at;
  return {begin, static_cast<size_t>(at - begin)};
}

void CsvReader::Add(std::string_view text, bool kept) {
  const size_t room = kMaxRowBytes - row_.size();
  damaged_ = damaged_ || !kept || text.size() > room;
  if (kept) row_ += text.substr(0, room);
}

// Behind the opening quote; ends behind the closing one.
void CsvReader::ReadQuoted(bool kept) {
  while (Peek() != kEnd) {
    const std::string_view run = Run([](char c) { return c == '"'; });
    Add(run, kept);
    Skip(run.size());
    if (pos_ == end_) continue;
    Skip(1);
    if (Peek() != '"') return;
    Add("\"", kept);
    Skip(1);
  }
  damaged_ = true;
}

// False for the last field of the row.
bool CsvReader::ReadField() {
  const bool kept = ends_.size() < kMaxFields;
  damaged_ = damaged_ || !kept;
  if (Peek() == '"') {
    Skip(1);
    ReadQuoted(kept);
  }
  // The rest of the field; all of it when it has no quotes.
  bool more = false;
  while (Peek() != kEnd) {
    const std::string_view run =
        Run([](char c) { return c == ',' || c == '\n' || c == '\r'; });
    Add(run, kept);
    Skip(run.size());
    if (pos_ == end_) continue;
    const char stop = buffer_[pos_];
    Skip(1);
    more = stop == ',';
    if (stop != '\r') break;
  }
  if (kept) ends_.push_back(row_.size());
  return more;
}

Result<bool> CsvReader::Next() {
  row_.clear();
  ends_.clear();
  fields_.clear();
  // Empty lines.
  while (Peek() == '\n' || Peek() == '\r') Skip(1);
  row_offset_ = offset_;
  if (Peek() != kEnd) {
    while (ReadField()) {
    }
  }
  if (error_) return Fail(*error_);
  size_t begin = 0;
  for (const size_t end : ends_) {
    fields_.push_back(std::string_view(row_).substr(begin, end - begin));
    begin = end;
  }
  return !fields_.empty();
}

}  // namespace lamina
