// SPDX-License-Identifier: Apache-2.0
//
// Keyed hashes of texts, by libsodium: SipHash-2-4 for tokens, BLAKE2b for keys
// that are made of what they hide.
#pragma once

#include <array>
#include <cstdint>
#include <sodium.h>
#include <string_view>

namespace lamina::render {

using HashKey = std::array<uint64_t, 2>;

// A short hash that says nothing about the text to somebody without the key.
uint64_t HashOf(const HashKey& key, std::string_view text);

// Gathers a key from everything that is added.
class KeyMaker {
 public:
  KeyMaker();
  void Add(std::string_view bytes);
  HashKey Finish();

 private:
  crypto_generichash_state state_;
};

}  // namespace lamina::render
