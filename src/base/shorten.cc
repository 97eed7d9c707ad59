// SPDX-License-Identifier: Apache-2.0
#include "base/shorten.h"

#include "base/escape.h"
#include "base/text.h"

namespace lamina {

std::string ShortenInside(std::string_view text, size_t max_bytes,
                          size_t tail) {
  constexpr size_t kDots = 3;
  if (text.size() <= max_bytes || max_bytes < tail + kDots)
    return Shorten(text, max_bytes);
  size_t end = text.size() - tail;
  while (end < text.size() &&
         (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    ++end;
  return Shorten(text, max_bytes - tail - kDots) +
         std::string(text.substr(end));
}

std::string WithoutNumbers(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (!IsDigit(c)) out += c;
    if (IsDigit(c) && !out.ends_with('#')) out += '#';
  }
  return out;
}

}  // namespace lamina
