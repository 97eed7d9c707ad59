// SPDX-License-Identifier: Apache-2.0
#include "render/redact/token_key.h"

#include <cstring>

namespace lamina::render {
namespace {

const unsigned char* BytesOf(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

uint64_t HashOf(const HashKey& key, std::string_view text) {
  static_assert(sizeof(HashKey) == crypto_shorthash_KEYBYTES);
  static_assert(sizeof(uint64_t) == crypto_shorthash_BYTES);
  uint64_t hash = 0;
  crypto_shorthash(reinterpret_cast<unsigned char*>(&hash), BytesOf(text),
                   text.size(),
                   reinterpret_cast<const unsigned char*>(key.data()));
  return hash;
}

KeyMaker::KeyMaker() {
  static const int ready = sodium_init();  // picks the fastest code
  (void)ready;
  crypto_generichash_init(&state_, nullptr, 0, sizeof(HashKey));
}

void KeyMaker::Add(std::string_view bytes) {
  const uint64_t size = bytes.size();
  crypto_generichash_update(
      &state_, reinterpret_cast<const unsigned char*>(&size), sizeof size);
  crypto_generichash_update(&state_, BytesOf(bytes), bytes.size());
}

HashKey KeyMaker::Finish() {
  HashKey key{};
  crypto_generichash_final(
      &state_, reinterpret_cast<unsigned char*>(key.data()), sizeof key);
  return key;
}

}  // namespace lamina::render
