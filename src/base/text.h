// SPDX-License-Identifier: Apache-2.0
//
// Small questions about text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

inline bool Contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// Of ASCII letters, whatever the locale.
constexpr char LowerCase(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}
inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = LowerCase(c);
  return lower;
}

// `word` is in lower case; ASCII letters of the text match in any case.
inline bool ContainsIgnoringCase(std::string_view text, std::string_view word) {
  return std::search(text.begin(), text.end(), word.begin(), word.end(),
                     [](char a, char b) { return LowerCase(a) == b; }) !=
         text.end();
}

// ASCII letters match in any case.
inline bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return LowerCase(x) == LowerCase(y);
  });
}

// 0 to 9, whatever the locale.
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// A letter, a digit or an underscore: what names of programs are made of.
constexpr bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

// FNV-1a: a hash that is the same on every machine and in every build. `hash`
// is that of the bytes in front.
constexpr uint64_t Fnv1a(std::string_view bytes,
                         uint64_t hash = 0xcbf29ce484222325) {
  for (const char c : bytes)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// What stands before the first `separator`, or all of it; both leave the text.
inline std::string_view TakeUntil(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

// Lines without their ends; an end of line at the end adds none.
inline std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) lines.push_back(TakeUntil(text, '\n'));
  return lines;
}

}  // namespace lamina
