// SPDX-License-Identifier: Apache-2.0
//
// The number of a known key of a record: a perfect hash over the length and
// three characters, made and checked when the program is compiled.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/padded_text.h"

namespace lamina {

template <size_t kKeys>
class KeyIndex {
 public:
  static constexpr size_t kCount = kKeys;
  static constexpr size_t kLongest = 40;
  // Bytes behind the start of a text that must be readable, whatever they are.
  static constexpr size_t kReadable = kLongest;

  constexpr explicit KeyIndex(const std::array<std::string_view, kKeys>& keys) {
    for (size_t i = 0; i < kKeys; ++i) {
      sizes_[i] = static_cast<uint8_t>(keys[i].size());
      // Longer or empty: not a constant expression, the build ends here.
      if (keys[i].empty() || keys[i].size() > kLongest) throw "key length";
      for (size_t k = 0; k < keys[i].size(); ++k) padded_[i][k] = keys[i][k];
    }
    while (!Fill(keys)) ++factor_;
  }

  // kKeys when the text is none of the keys.
  size_t Find(std::string_view text) const {
    if (text.empty() || text.size() > kLongest) return kKeys;
    const uint8_t key = slots_[Hash(text)];
    return key != kNoKey && sizes_[key] == text.size() &&
                   SamePadded(text.data(), padded_[key].data(), text.size())
               ? key
               : kKeys;
  }

 private:
  static constexpr uint8_t kNoKey = 255;
  static constexpr size_t kSlots = 1024;
  static_assert(kKeys < kNoKey);

  constexpr size_t Hash(std::string_view text) const {
    const auto byte = [&](size_t i) {
      return static_cast<unsigned char>(text[i]);
    };
    return (text.size() * 131 + byte(0) + byte(text.size() / 2) * factor_ +
            byte(text.size() - 1) * 101) %
           kSlots;
  }

  // False when two keys have one slot.
  constexpr bool Fill(const std::array<std::string_view, kKeys>& keys) {
    for (uint8_t& slot : slots_) slot = kNoKey;
    for (size_t i = 0; i < kKeys; ++i) {
      uint8_t& slot = slots_[Hash(keys[i])];
      if (slot != kNoKey) return false;
      slot = static_cast<uint8_t>(i);
    }
    return true;
  }

  unsigned factor_ = 29;
  std::array<uint8_t, kSlots> slots_{};
  std::array<uint8_t, kKeys> sizes_{};
  std::array<std::array<char, kLongest + kPaddedBytes>, kKeys> padded_{};
};

}  // namespace lamina
