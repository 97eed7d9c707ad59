// SPDX-License-Identifier: Apache-2.0
#include "serve/http.h"

#include <algorithm>

#include "base/text.h"

namespace lamina::serve {
std::string HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (EqualsIgnoringCase(key, name)) return value;
  }
  return {};
}

size_t HttpRequest::CountOf(std::string_view name) const {
  return static_cast<size_t>(std::count_if(
      headers.begin(), headers.end(),
      [&](const auto& one) { return EqualsIgnoringCase(one.first, name); }));
}

}  // namespace lamina::serve
