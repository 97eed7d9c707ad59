// SPDX-License-Identifier: Apache-2.0
//
// Structures to bytes and back. A structure lists its members once, in
// Fields(archive, value), for both directions. Numbers are little-endian, so
// the bytes mean the same on every machine that lamina runs on.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lamina::dist {

static_assert(std::endian::native == std::endian::little);

template <class T>
concept Scalar = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class Encoder {
 public:
  static constexpr bool kReading = false;

  template <class... Values>
  void operator()(const Values&... values) {
    (Put(values), ...);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <Scalar T>
  void Put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Put(const std::string& text) {
    Put(static_cast<uint64_t>(text.size()));
    bytes_ += text;
  }
  template <class T>
  void Put(const std::vector<T>& list) {
    Put(static_cast<uint64_t>(list.size()));
    for (const T& value : list) Put(value);
  }
  template <class T>
  requires(!Scalar<T>) void Put(const T& value) {
    // Fields() takes both directions, so it cannot say const.
    Fields(*this, const_cast<T&>(value));
  }

  std::string bytes_;
};

// Reads what an Encoder wrote. Bytes that end too early give zeros and make
// ok() false; no length in them is believed before it is held against what is
// left.
class Decoder {
 public:
  static constexpr bool kReading = true;

  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}
  template <class... Values>
  void operator()(Values&... values) {
    (Get(values), ...);
  }
  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  template <Scalar T>
  void Get(T& value) {
    if (bytes_.size() < sizeof value) {
      ok_ = false;
      bytes_ = {};
      value = T{};
      return;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
  }
  uint64_t Length() {
    uint64_t size = 0;
    Get(size);
    if (size > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return 0;
    }
    return size;
  }
  void Get(std::string& text) {
    const uint64_t size = Length();
    text.assign(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
  }
  template <class T>
  void Get(std::vector<T>& list) {
    // Every value takes a byte at least, so the length is bounded.
    const uint64_t size = Length();
    list.clear();
    for (uint64_t i = 0; i < size && ok_; ++i) Get(list.emplace_back());
  }
  template <class T>
  requires(!Scalar<T>) void Get(T& value) { Fields(*this, value); }

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace lamina::dist
