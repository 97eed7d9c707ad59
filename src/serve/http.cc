// SPDX-License-Identifier: Apache-2.0
#include "serve/http.h"

#include <algorithm>

namespace lamina::serve {
namespace {

bool SameName(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

std::string HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (SameName(key, name)) return value;
  }
  return {};
}

size_t HttpRequest::CountOf(std::string_view name) const {
  return static_cast<size_t>(std::count_if(
      headers.begin(), headers.end(),
      [&](const auto& one) { return SameName(one.first, name); }));
}

}  // namespace lamina::serve
