// SPDX-License-Identifier: Apache-2.0
//
// SipHash-2-4 (Aumasson and Bernstein, 2012): a short hash of a text that says
// nothing about the text to somebody who has not the key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lamina::render {

using HashKey = std::array<uint64_t, 2>;

// Hashes what is added, as one text.
class SipHash {
 public:
  explicit SipHash(const HashKey& key);
  void Add(std::string_view bytes);
  uint64_t Finish();

 private:
  void Word(uint64_t word);
  void Round();

  std::array<uint64_t, 4> v_;
  uint64_t rest_ = 0;  // bytes of an unfinished word, lowest first
  uint64_t size_ = 0;
};

uint64_t SipHashOf(const HashKey& key, std::string_view text);

// Gathers a key from everything that is added.
class KeyMaker {
 public:
  void Add(std::string_view bytes);
  HashKey Finish();

 private:
  // Any two different keys: what must stay secret is what is hashed.
  SipHash low_{HashKey{0x6c616d696e61, 1}};
  SipHash high_{HashKey{0x6c616d696e61, 2}};
};

}  // namespace lamina::render
