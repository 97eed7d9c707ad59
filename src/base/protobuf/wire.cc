// SPDX-License-Identifier: Apache-2.0

#include "base/protobuf/wire.h"

#include <algorithm>

namespace lamina::protobuf {

static_assert(std::endian::native == std::endian::little,
              "fixed fields are copied as they stand");

const char* ReadVarint(const char** at, const char* end, uint64_t* value) {
  uint64_t result = 0;
  const char* p = *at;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (p == end) return "the input ends inside a number";
    const auto byte = static_cast<unsigned char>(*p++);
    if (shift < 64) result |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) {
      *value = result;
      *at = p;
      return nullptr;
    }
  }
  return "a number is longer than ten bytes";
}

const char* CheckTag(uint64_t tag, uint32_t* number, WireType* type) {
  const uint64_t field = tag >> 3;
  if (field == 0 || field >= uint64_t{1} << 29)
    return "a field has a number that cannot be";
  *number = static_cast<uint32_t>(field);
  *type = static_cast<WireType>(tag & 7);
  switch (*type) {
    case WireType::kVarint:
    case WireType::kFixed64:
    case WireType::kBytes:
    case WireType::kFixed32:
      return nullptr;
  }
  return "a field has a type that is not in use";
}

bool Walker::NextChecked() {
  const char* const start = at_;
  uint64_t tag = 0;
  if (const char* what = ReadVarint(&at_, end_, &tag))
    return Broken(start, what);
  if (const char* what = CheckTag(tag, &field_.number, &field_.type))
    return Broken(start, what);
  field_.offset = offset_ + static_cast<uint64_t>(start - begin_);
  field_.bytes = {};
  const auto left = [&] { return static_cast<uint64_t>(end_ - at_); };
  switch (field_.type) {
    case WireType::kVarint:
      if (const char* what = ReadVarint(&at_, end_, &field_.value))
        return Broken(start, what);
      return true;
    case WireType::kFixed64:
      if (left() < 8) return Broken(start, "the input ends inside a number");
      std::memcpy(&field_.value, at_, 8);
      at_ += 8;
      return true;
    case WireType::kFixed32: {
      if (left() < 4) return Broken(start, "the input ends inside a number");
      uint32_t value = 0;
      std::memcpy(&value, at_, 4);
      field_.value = value;
      at_ += 4;
      return true;
    }
    case WireType::kBytes:
      if (const char* what = ReadVarint(&at_, end_, &field_.value))
        return Broken(start, what);
      if (field_.value > left())
        return Broken(start, "a field is longer than the message around it");
      field_.bytes = {at_, static_cast<size_t>(field_.value)};
      field_.data_offset = offset_ + static_cast<uint64_t>(at_ - begin_);
      at_ += field_.value;
      return true;
  }
  return false;
}

void Encoder::Raw(uint64_t value) {
  while (value >= 0x80) {
    bytes_ += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes_ += static_cast<char>(value);
}

void Encoder::Varint(uint32_t number, uint64_t value) {
  Raw(uint64_t{number} << 3);
  Raw(value);
}

void Encoder::Fixed64(uint32_t number, uint64_t value) {
  Raw(uint64_t{number} << 3 | 1);
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void Encoder::Bytes(uint32_t number, std::string_view bytes) {
  Raw(uint64_t{number} << 3 | 2);
  Raw(bytes.size());
  bytes_ += bytes;
}

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
