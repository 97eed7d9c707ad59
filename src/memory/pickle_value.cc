// SPDX-License-Identifier: Apache-2.0
#include "memory/pickle_value.h"

namespace lamina::memory {
namespace {

// Slots that held more are given back when they are free.
constexpr size_t kKeptValues = 4096;

}  // namespace

Value Heap::MakeInt(int64_t value) {
  if (value >= -(int64_t{1} << 59) && value < (int64_t{1} << 59))
    return Value(Kind::kInt, static_cast<uint64_t>(value));
  big_.push_back(value);
  return Value(Kind::kBigInt, big_.size() - 1);
}

Value Heap::MakeFloat(double value) {
  floats_.push_back(value);
  return Value(Kind::kFloat, floats_.size() - 1);
}

Value Heap::MakeTuple(const Value* items, size_t count) {
  const uint64_t at = tuples_.size();
  tuples_.push_back(Value(Kind::kInt, count));
  tuples_.append(items, count);
  return Value(Kind::kTuple, at);
}

Value Heap::MakeContainer(Kind kind) {
  nodes_.push_back(Value(kind, 0));
  return Value(kind, nodes_.size() - 1);
}

std::span<const Value> Heap::Tuple(Value value) const {
  const size_t at = value.payload();
  return {tuples_.data() + at + 1,
          static_cast<size_t>(tuples_[at].small_int())};
}

std::span<const Value> Heap::Items(Value container) const {
  const std::vector<Value>& slot =
      slots_[nodes_[container.payload()].payload() >> 1];
  return {slot.data(), slot.size()};
}

std::vector<Value>& Heap::Open(Value container) {
  Value& node = nodes_[container.payload()];
  if (node.payload() == 0) {
    uint64_t slot = slots_.size();
    if (free_slots_.empty()) {
      slots_.emplace_back();
    } else {
      slot = free_slots_.back();
      free_slots_.pop_back();
    }
    node = Value(container.kind(), slot << 1);
  }
  return slots_[node.payload() >> 1];
}

bool Heap::IsClosed(Value container) const {
  const Value node = nodes_[container.payload()];
  return !node.IsContainer() || (node.payload() & 1) != 0;
}

void Heap::Close(Value container) {
  Value& node = nodes_[container.payload()];
  node = Value(node.kind(), node.payload() | 1);
}

void Heap::Replace(Value container, Value row) {
  Value& node = nodes_[container.payload()];
  if (const uint64_t slot = node.payload() >> 1; slot != 0) {
    if (slots_[slot].capacity() > kKeptValues)
      slots_[slot] = {};
    else
      slots_[slot].clear();
    free_slots_.push_back(static_cast<uint32_t>(slot));
  }
  node = row;
}

}  // namespace lamina::memory
