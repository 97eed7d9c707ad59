// SPDX-License-Identifier: Apache-2.0
//
// Records of a list that differ in nothing but their numbers: their shape, and
// which number is which.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/tokens.h"

namespace lamina::ingest::rocprof {

// The numbers of a record: which key, in which object, is which.

// Fields of a record; the order is free.
enum Field : uint8_t {
  kStart,
  kEnd,
  kThread,
  kKind,
  kOperation,
  kCorrelation,
  kAgent,
  kQueue,
  kStream,
  kKernel,
  kGroupBytes,
  kWorkgroupX,
  kWorkgroupY,
  kWorkgroupZ,
  kGridX,
  kGridY,
  kGridZ,
  kSourceAgent,
  kTargetAgent,
  kBytes,
  kAllocated,
  kAddress,
  kFields,
  // Objects around numbers.
  kInCorrelation,
  kInAgent,
  kInQueue,
  kInStream,
  kInSourceAgent,
  kInTargetAgent,
  kInWorkgroup,
  kInGrid,
  kInAddress,
  kInDispatch,
  kOther,
};

// What the key `key` means in the object `around`, which is kOther for the
// record itself. The text of the key must have room behind it as KeyIndex
// needs.
Field FieldOf(Field around, std::string_view key);

// The records of a list differ in their numbers and in nothing else: the same
// keys stand in the same order with the same spaces. The shape of one record is
// the text between its numbers, and a record of that shape is read by comparing
// text instead of walking through objects.

using FieldValues = std::array<int64_t, kFields>;

class Shape {
 public:
  // While a record is walked through: the token of a field's value.
  void Begin(size_t token) {
    begin_ = token;
    fields_.clear();
  }
  void AddField(size_t token, Field field) {
    fields_.push_back({token, field});
  }
  // The record ends before the token `end`.
  void Learn(const json::Tokens& tokens, size_t end);

  // The numbers of the record at `token`, of which this moves behind it; false
  // when it has another shape.
  bool Read(const json::Tokens& tokens, size_t& token,
            FieldValues& values) const;

 private:
  struct FieldToken {
    size_t token;
    Field field;
  };
  // Some text, then a number.
  struct Part {
    uint32_t begin;  // of the text in text_
    uint32_t size;
    Field field;  // kOther: not used
  };
  size_t begin_ = 0;
  std::vector<FieldToken> fields_;

  size_t tokens_ = 0;  // of a record; 0: nothing is known
  std::string text_;
  std::vector<Part> parts_;
  Part tail_{};  // behind the last number
};

}  // namespace lamina::ingest::rocprof
