// SPDX-License-Identifier: Apache-2.0
//
// The wire format of protocol buffers, field by field and without a schema.
// Messages of traces reach gigabytes and hold millions of small events, so
// nothing is built: a Walker visits the fields of a message that lies in
// memory, a Stream those of one that does not.
//
// Input is hostile: every length is checked against the message around it,
// and what does not fit is damage with an offset, never a guess.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"

namespace lamina::protobuf {

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kFixed32 = 5,
};

struct Field {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;        // of a varint or fixed field; else the length
  std::string_view bytes;    // of a kBytes field
  uint64_t offset = 0;       // of its first byte (the tag)
  uint64_t data_offset = 0;  // of the first byte of `bytes`

  int64_t Int() const { return static_cast<int64_t>(value); }
  double Double() const { return std::bit_cast<double>(value); }
  bool IsBytes() const { return type == WireType::kBytes; }
  bool IsNumber() const { return type != WireType::kBytes; }
};

// What ends the walk before the end of a message.
struct Damage {
  uint64_t offset = 0;
  const char* what = nullptr;  // null: none

  explicit operator bool() const { return what != nullptr; }
};

// Reads a varint at `*at`, before `end`; moves `*at` behind it. Null if fine.
const char* ReadVarint(const char** at, const char* end, uint64_t* value);

// A tag, checked: field numbers from 1, the four wire types in use.
const char* CheckTag(uint64_t tag, uint32_t* number, WireType* type);

// The fields of one message in memory, in order. Copies nothing.
class Walker {
 public:
  // `offset` is that of the first byte in the input, for messages.
  explicit Walker(std::string_view message, uint64_t offset = 0)
      : begin_(message.data()),
        at_(message.data()),
        end_(message.data() + message.size()),
        offset_(offset) {}
  // The message in a field of another.
  explicit Walker(const Field& field)
      : Walker(field.bytes, field.data_offset) {}

  // Moves to the next field; false at the end or at damage.
  bool Next() {
    if (at_ == end_ || damage_) return false;
    return NextQuick() || NextChecked();
  }
  const Field& field() const { return field_; }
  const Field* operator->() const { return &field_; }
  const Damage& damage() const { return damage_; }

 private:
  // Reads a field as nearly all are: a number or some bytes, whole and in
  // place. False without moving when it is something else.
  bool NextQuick() {
    const char* p = at_;
    uint64_t tag = 0;
    uint64_t value = 0;
    if (!QuickVarint(p, &tag) || tag < 8 || tag >> 32 != 0) return false;
    std::string_view bytes;
    const auto type = static_cast<WireType>(tag & 7);
    switch (type) {
      case WireType::kVarint:
        if (!QuickVarint(p, &value)) return false;
        break;
      case WireType::kFixed64:
        if (end_ - p < 8) return false;
        std::memcpy(&value, p, sizeof(value));
        p += sizeof(value);
        break;
      case WireType::kBytes:
        if (!QuickVarint(p, &value) || value > static_cast<uint64_t>(end_ - p))
          return false;
        bytes = {p, static_cast<size_t>(value)};
        field_.data_offset = offset_ + static_cast<uint64_t>(p - begin_);
        p += value;
        break;
      default:
        return false;
    }
    field_.number = static_cast<uint32_t>(tag >> 3);
    field_.type = type;
    field_.value = value;
    field_.bytes = bytes;
    field_.offset = offset_ + static_cast<uint64_t>(at_ - begin_);
    at_ = p;
    return true;
  }
  // False for a number that is cut or too long.
  bool QuickVarint(const char*& p, uint64_t* value) const {
    if (p == end_) return false;
    uint64_t result = static_cast<unsigned char>(*p++);
    if (result < 0x80) {
      *value = result;
      return true;
    }
    result &= 0x7F;
    for (unsigned shift = 7; shift < 70; shift += 7) {
      if (p == end_) return false;
      const auto byte = static_cast<unsigned char>(*p++);
      result |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        *value = result;
        return true;
      }
    }
    return false;
  }
  // Any field, and what is wrong with it.
  bool NextChecked();
  bool Broken(const char* at, const char* what) {
    damage_ = {offset_ + static_cast<uint64_t>(at - begin_), what};
    return false;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  uint64_t offset_;
  Field field_;
  Damage damage_;
};

// Calls `visit(uint64_t)` for the values of a repeated integer field, packed or
// single. Stops at damage inside a packed list.
template <class Visit>
void ForEachVarint(const Field& field, Visit&& visit) {
  if (!field.IsBytes()) {
    visit(field.value);
    return;
  }
  const char* at = field.bytes.data();
  const char* const end = at + field.bytes.size();
  uint64_t value = 0;
  while (at < end && ReadVarint(&at, end, &value) == nullptr) visit(value);
}

// The same for fixed64 values.
template <class Visit>
void ForEachFixed64(const Field& field, Visit&& visit) {
  if (!field.IsBytes()) {
    visit(field.value);
    return;
  }
  for (size_t i = 0; i + 8 <= field.bytes.size(); i += 8) {
    uint64_t value = 0;
    std::memcpy(&value, field.bytes.data() + i, sizeof(value));
    visit(value);
  }
}

// Writes fields. Numbers of fields are below 2^29.
class Encoder {
 public:
  void Varint(uint32_t number, uint64_t value);
  void Int(uint32_t number, int64_t value) {
    Varint(number, static_cast<uint64_t>(value));
  }
  void Fixed64(uint32_t number, uint64_t value);
  void Double(uint32_t number, double value) {
    Fixed64(number, std::bit_cast<uint64_t>(value));
  }
  void Bytes(uint32_t number, std::string_view bytes);

  const std::string& bytes() const { return bytes_; }
  void Clear() { bytes_.clear(); }

 private:
  void Raw(uint64_t value);
  std::string bytes_;
};

// The fields of a message that is too large to hold: read front to back from
// a ByteSource. A message inside it is entered (its fields follow), taken
// whole as bytes, or skipped. Memory is bounded by the longest message taken.

class Stream {
 public:
  explicit Stream(ByteSource& source) : source_(source) {}

  // Moves to the next field of the open message; what was not taken of the
  // last one is skipped. False at its end, or at damage. `field().bytes` is
  // not set: use Enter() or Take().
  bool Next();
  const Field& field() const { return field_; }

  // The field's message becomes the open one.
  void Enter();
  // Back to the message around it; skips what is left of the open one.
  void Leave();
  // The bytes of the field; valid until the next call. False at damage, and
  // for fields of more than `limit` bytes, which are then skipped.
  bool Take(size_t limit = size_t{1} << 30);
  std::string_view bytes() const { return taken_; }

  // Offset of the next byte, in the unpacked input.
  uint64_t offset() const { return offset_; }
  // Ends the walk: a field does not fit, or the input is cut.
  const Damage& damage() const { return damage_; }
  // Gives the open message up and goes on behind it, where the message around
  // it says that it ends. False where nothing around it says so.
  bool Recover();
  // A failing device.
  const Status& status() const { return status_; }

 private:
  bool Fill(size_t size);
  void Consume(size_t size) {
    begin_ += size;
    offset_ += size;
  }
  bool SkipTo(uint64_t offset);
  bool Varint(uint64_t* value);
  bool Broken(uint64_t offset, const char* what) {
    if (!damage_) damage_ = {offset, what};
    return false;
  }
  uint64_t End() const { return ends_.empty() ? UINT64_MAX : ends_.back(); }

  ByteSource& source_;
  std::string buffer_;
  size_t begin_ = 0;  // of what is left in the buffer
  size_t size_ = 0;   // bytes in the buffer
  uint64_t offset_ = 0;
  bool at_end_ = false;
  std::vector<uint64_t> ends_;  // of the open messages
  Field field_;
  uint64_t field_end_ = 0;  // of the current field
  std::string_view taken_;
  Damage damage_;
  Status status_;
};

}  // namespace lamina::protobuf
