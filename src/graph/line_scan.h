// SPDX-License-Identifier: Apache-2.0
//
// Inside of the line parser: what bytes and words of a dump are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "graph/dimension.h"

namespace lamina::graph {

// Between a value and its type.
inline constexpr std::string_view kColon = " : ";

// What a byte means to the scanner.
enum class Byte : uint8_t { kOther, kOpen, kClose, kQuote, kComma };

inline constexpr std::array<Byte, 256> kBytes = [] {
  std::array<Byte, 256> out{};
  for (const char c : {'(', '[', '{'})
    out[static_cast<uint8_t>(c)] = Byte::kOpen;
  for (const char c : {')', ']', '}'})
    out[static_cast<uint8_t>(c)] = Byte::kClose;
  for (const char c : {'\'', '"'}) out[static_cast<uint8_t>(c)] = Byte::kQuote;
  out[static_cast<uint8_t>(',')] = Byte::kComma;
  return out;
}();

inline Byte ByteOf(char c) { return kBytes[static_cast<uint8_t>(c)]; }

inline bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<uint8_t>(c) >= 0x80;
}
inline bool IsNameByte(char c) { return IsNameStart(c) || IsDigit(c); }
// Names of values are nearly free: dots, quotes and angle brackets occur.
inline bool IsValueNameByte(char c) {
  return static_cast<uint8_t>(c) > ' ' && ByteOf(c) != Byte::kOpen &&
         ByteOf(c) != Byte::kClose && c != ',' && c != '%' && c != '=' &&
         c != 0x7f;
}

// Past the string that begins at `pos`; the end of the text when it does not
// end.
size_t SkipQuoted(std::string_view text, size_t pos);

// Past the `<...>` that begins at `pos`, brackets counted; npos when it does
// not end.
size_t SkipAngles(std::string_view text, size_t pos);

// None, True, slice ...: words that name no value.
bool IsKeyword(std::string_view name);
bool IsNumber(std::string_view text);
// "cuda:0", "cpu"
bool IsDevice(std::string_view text);

}  // namespace lamina::graph
