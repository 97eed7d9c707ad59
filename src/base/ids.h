// SPDX-License-Identifier: Apache-2.0
//
// Strong index types: a StringId is no SliceId, though both are 32 bits.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace lamina {

template <class Tag>
struct Id {
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  uint32_t value = kNone;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t v) : value(v) {}
  constexpr bool valid() const { return value != kNone; }
  constexpr auto operator<=>(const Id&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.value);
  }
};

}  // namespace lamina

template <class Tag>
struct std::hash<lamina::Id<Tag>> {
  size_t operator()(lamina::Id<Tag> id) const noexcept { return id.value; }
};
