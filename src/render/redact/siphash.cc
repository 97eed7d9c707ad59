// SPDX-License-Identifier: Apache-2.0
#include "render/redact/siphash.h"

#include <bit>
#include <cstring>

namespace lamina::render {

static_assert(std::endian::native == std::endian::little,
              "words are read as they lie in memory");

SipHash::SipHash(const HashKey& key)
    : v_{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
         key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573} {}

void SipHash::Round() {
  auto& [a, b, c, d] = v_;
  a += b;
  c += d;
  b = std::rotl(b, 13) ^ a;
  d = std::rotl(d, 16) ^ c;
  a = std::rotl(a, 32);
  c += b;
  a += d;
  b = std::rotl(b, 17) ^ c;
  d = std::rotl(d, 21) ^ a;
  c = std::rotl(c, 32);
}

void SipHash::Word(uint64_t word) {
  v_[3] ^= word;
  Round();
  Round();
  v_[0] ^= word;
}

void SipHash::Add(std::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    if (size_ % 8 == 0 && bytes.size() - i >= 8) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + i, 8);
      Word(word);
      i += 8;
      size_ += 8;
      continue;
    }
    rest_ |= uint64_t{static_cast<uint8_t>(bytes[i++])} << (8 * (size_ % 8));
    if (++size_ % 8 == 0) {
      Word(rest_);
      rest_ = 0;
    }
  }
}

uint64_t SipHash::Finish() {
  Word(rest_ | (size_ << 56));
  v_[2] ^= 0xff;
  for (int i = 0; i < 4; ++i) Round();
  return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
}

uint64_t SipHashOf(const HashKey& key, std::string_view text) {
  SipHash hash(key);
  hash.Add(text);
  return hash.Finish();
}

void KeyMaker::Add(std::string_view bytes) {
  const uint64_t size = bytes.size();
  const std::string_view length(reinterpret_cast<const char*>(&size),
                                sizeof(size));
  for (SipHash* half : {&low_, &high_}) {
    half->Add(length);
    half->Add(bytes);
  }
}

HashKey KeyMaker::Finish() { return {low_.Finish(), high_.Finish()}; }

}  // namespace lamina::render
