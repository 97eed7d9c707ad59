// SPDX-License-Identifier: Apache-2.0
//
// Values of a pickle that is being read: 8 bytes each, and where lists,
// dictionaries and tuples keep what is in them. A dictionary that is a known
// record becomes a row of the snapshot as soon as its parent takes it in, so a
// file of any size leaves 8 bytes per container behind.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/pod_vector.h"

namespace lamina::memory {

enum class Kind : uint8_t {
  kNone,
  kBool,
  kInt,
  kBigInt,  // index of a side table
  kFloat,   // index of a side table
  kText,
  kTuple,
  kList,
  kDict,
  // Rows; the payload is their number.
  kFrame,
  kStack,
  kEvent,
  kBlock,
  kSegment,
  kUse,  // an entry of "history" in the first layout
  kAnnotation,
};

class Value {
 public:
  constexpr Value() = default;
  constexpr Value(Kind kind, uint64_t payload)
      : bits_(static_cast<uint64_t>(kind) | payload << 4) {}
  constexpr Kind kind() const { return static_cast<Kind>(bits_ & 15); }
  constexpr uint64_t payload() const { return bits_ >> 4; }
  constexpr int64_t small_int() const {
    return static_cast<int64_t>(bits_) >> 4;
  }
  // An entry of the memo that is not set.
  static constexpr Value Unset() { return Value(Kind::kNone, 1); }
  constexpr bool unset() const { return bits_ == Unset().bits_; }
  constexpr bool Is(Kind k) const { return kind() == k; }
  constexpr bool IsContainer() const {
    return Is(Kind::kList) || Is(Kind::kDict);
  }

 private:
  uint64_t bits_ = 0;
};

class Heap {
 public:
  Value MakeInt(int64_t value);
  Value MakeFloat(double value);
  Value MakeTuple(const Value* items, size_t count);
  Value MakeContainer(Kind kind);

  int64_t Int(Value value) const {
    return value.Is(Kind::kBigInt) ? big_[value.payload()] : value.small_int();
  }
  double Float(Value value) const { return floats_[value.payload()]; }
  std::span<const Value> Tuple(Value value) const;

  // The row that a container has become, or the value itself.
  Value Resolve(Value value) const {
    if (!value.IsContainer()) return value;
    const Value node = nodes_[value.payload()];
    return node.IsContainer() ? value : node;
  }
  // What is in an unresolved container: items, or keys and values in turn.
  std::span<const Value> Items(Value container) const;
  // Room to add to it. It must be open.
  std::vector<Value>& Open(Value container);
  bool IsClosed(Value container) const;
  void Close(Value container);
  // The container becomes this row; what was in it is dropped.
  void Replace(Value container, Value row);

 private:
  // Payload of an unresolved node: slot * 2 + closed; slot 0: empty.
  PodVector<Value> nodes_;
  PodVector<Value> tuples_;  // count as an integer, then the items
  PodVector<int64_t> big_;
  PodVector<double> floats_;
  std::vector<std::vector<Value>> slots_ = std::vector<std::vector<Value>>(1);
  std::vector<uint32_t> free_slots_;
};

}  // namespace lamina::memory
