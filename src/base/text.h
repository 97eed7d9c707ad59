// SPDX-License-Identifier: Apache-2.0
//
// Small questions about text.
#pragma once

#include <algorithm>
#include <string_view>

namespace lamina {

inline bool Contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// `word` is in lower case; ASCII letters of the text match in any case.
inline bool ContainsIgnoringCase(std::string_view text, std::string_view word) {
  return std::search(text.begin(), text.end(), word.begin(), word.end(),
                     [](char a, char b) {
                       return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b;
                     }) != text.end();
}

// ASCII letters match in any case.
inline bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace lamina
