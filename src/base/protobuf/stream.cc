// SPDX-License-Identifier: Apache-2.0
#include "base/protobuf/stream.h"

#include <algorithm>

namespace lamina::protobuf {
namespace {

constexpr size_t kRead = size_t{1} << 18;
constexpr size_t kLongestVarint = 10;

}  // namespace

// Makes `size` bytes lie in the buffer; false at the end of the input. The
// buffer grows with what is really there, not with what a length claims.
bool Stream::Fill(size_t size) {
  while (size_ - begin_ < size) {
    if (at_end_) return false;
    if (begin_ > 0) {
      std::copy(buffer_.begin() + static_cast<ptrdiff_t>(begin_),
                buffer_.begin() + static_cast<ptrdiff_t>(size_),
                buffer_.begin());
      size_ -= begin_;
      begin_ = 0;
    }
    const size_t room = std::max(kRead, std::min(size, 2 * size_));
    if (buffer_.size() < size_ + room) buffer_.resize(size_ + room);
    auto got = source_.Read(buffer_.data() + size_, buffer_.size() - size_);
    if (!got) {
      status_ = Fail(std::move(got).error());
      at_end_ = true;
    } else if (*got == 0) {
      at_end_ = true;
    } else {
      size_ += *got;
    }
  }
  return true;
}

bool Stream::SkipTo(uint64_t offset) {
  while (offset_ < offset) {
    if (begin_ == size_ && !Fill(1))
      return Broken(offset_, "the input ends inside a message");
    Consume(static_cast<size_t>(
        std::min<uint64_t>(offset - offset_, size_ - begin_)));
  }
  return true;
}

bool Stream::Varint(uint64_t* value) {
  if (size_ - begin_ < kLongestVarint) Fill(kLongestVarint);
  const char* const start = buffer_.data() + begin_;
  const char* at = start;
  const uint64_t room = std::min<uint64_t>(size_ - begin_, End() - offset_);
  if (const char* what = ReadVarint(&at, start + room, value))
    return Broken(offset_, what);
  Consume(static_cast<size_t>(at - start));
  return true;
}

bool Stream::Next() {
  taken_ = {};
  if (damage_ || !SkipTo(field_end_)) return false;
  if (offset_ == End()) return false;
  if (ends_.empty() && begin_ == size_ && !Fill(1)) return false;
  const uint64_t start = offset_;
  uint64_t tag = 0;
  if (!Varint(&tag)) return false;
  if (const char* what = CheckTag(tag, &field_.number, &field_.type))
    return Broken(start, what);
  field_.offset = start;
  field_.bytes = {};
  switch (field_.type) {
    case WireType::kVarint:
      if (!Varint(&field_.value)) return false;
      break;
    case WireType::kFixed64:
    case WireType::kFixed32: {
      const size_t size = field_.type == WireType::kFixed64 ? 8 : 4;
      if (End() - offset_ < size || !Fill(size))
        return Broken(start, "the input ends inside a number");
      field_.value = 0;
      std::memcpy(&field_.value, buffer_.data() + begin_, size);
      Consume(size);
      break;
    }
    case WireType::kBytes:
      if (!Varint(&field_.value)) return false;
      if (field_.value > End() - offset_)
        return Broken(start, "a field is longer than the message around it");
      field_end_ = offset_ + field_.value;
      field_.data_offset = offset_;
      return true;
  }
  field_end_ = offset_;
  return true;
}

void Stream::Enter() {
  ends_.push_back(field_end_);
  field_end_ = offset_;
}

void Stream::Leave() {
  const uint64_t end = ends_.back();
  ends_.pop_back();
  field_end_ = std::max(end, offset_);
}

bool Stream::Recover() {
  if (ends_.empty() || !status_) return false;
  damage_ = {};
  field_end_ = ends_.back();
  return SkipTo(field_end_);
}

bool Stream::Take(size_t limit) {
  const uint64_t size = field_end_ - offset_;
  if (size > limit) return false;
  if (!Fill(static_cast<size_t>(size)))
    return Broken(field_.offset, "the input ends inside a message");
  taken_ = {buffer_.data() + begin_, static_cast<size_t>(size)};
  Consume(static_cast<size_t>(size));
  return true;
}

}  // namespace lamina::protobuf
