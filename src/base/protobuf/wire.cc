// SPDX-License-Identifier: Apache-2.0
#include "base/protobuf/wire.h"

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

}  // namespace lamina::protobuf
