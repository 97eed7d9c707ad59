// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a track event, as far as the model has a place for them.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ingest/common/arg_rows.h"
#include "trace/builder.h"

namespace lamina::ingest::pftrace {

// A number cut off at what 32 bits hold.
inline uint32_t Small(uint64_t value) {
  return static_cast<uint32_t>(value < 0xFFFFFFFF ? value : 0xFFFFFFFF);
}

// The known arguments of one event.
class EventArgs {
 public:
  struct Value {
    enum class Type : uint8_t { kInt, kReal, kText, kJson, kTriple };
    Type type = Type::kInt;
    int64_t integer = 0;
    double real = 0;
    std::string_view text;
    StringId interned;  // of a text from a table
    std::array<uint32_t, 3> triple{};
  };

  void Clear(trace::LocalNames* names) {
    names_ = names;
    present_ = 0;
  }
  void Set(ArgKey key, const Value& value) {
    present_ |= ArgBit(key);
    values_[static_cast<size_t>(key)] = value;
  }
  const Value& operator[](ArgKey key) const {
    return values_[static_cast<size_t>(key)];
  }

  bool Has(ArgKey key) const { return (present_ & ArgBit(key)) != 0; }
  uint64_t present() const { return present_; }
  int64_t Int(ArgKey key) const;
  std::optional<double> Real(ArgKey key) const;
  StringId Text(ArgKey key);
  StringId List(ArgKey key);
  std::array<uint32_t, 3> Triple(ArgKey key) const;

 private:
  trace::LocalNames* names_ = nullptr;
  uint64_t present_ = 0;
  std::array<Value, trace::kArgKeys> values_;
  absl::flat_hash_map<StringId, StringId> lists_;  // text to canonical JSON
};

}  // namespace lamina::ingest::pftrace
