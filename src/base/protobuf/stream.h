// SPDX-License-Identifier: Apache-2.0
//
// The fields of a message that is too large to hold: read front to back from
// a ByteSource. A message inside it is entered (its fields follow), taken
// whole as bytes, or skipped. Memory is bounded by the longest message taken.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/protobuf/wire.h"

namespace lamina::protobuf {

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
