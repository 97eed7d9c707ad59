// SPDX-License-Identifier: Apache-2.0
//
// Comparison of short texts by words, for texts with readable bytes behind
// them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace lamina {

// How many bytes behind both texts must be readable, whatever they are.
inline constexpr size_t kPaddedBytes = 8;

inline bool SamePadded(const char* a, const char* b, size_t size) {
  static_assert(std::endian::native == std::endian::little,
                "the shift drops the high bytes of the last word");
  const auto word = [](const char* at) {
    uint64_t bytes = 0;
    __builtin_memcpy(&bytes, at, sizeof(bytes));
    return bytes;
  };
  uint64_t difference = 0;
  size_t i = 0;
  for (; i + 8 <= size; i += 8) difference |= word(a + i) ^ word(b + i);
  if (i < size) {
    const auto unused = static_cast<unsigned>(8 * (8 - (size - i)));
    difference |= (word(a + i) ^ word(b + i)) << unused;
  }
  return difference == 0;
}

}  // namespace lamina
