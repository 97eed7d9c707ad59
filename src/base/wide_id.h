// SPDX-License-Identifier: Apache-2.0
//
// Ids and addresses of 64 bits without a sign, as the int64 that tables hold.
// From 2^63 on they are negative there, as other tools of 64 bits show them;
// equal ones stay equal and different ones different. 2^63 itself stands for
// "no value" in the models, and no allocator gives the address beside it.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "base/decimal.h"

namespace lamina {

constexpr int64_t WideId(uint64_t id) {
  const auto value = static_cast<int64_t>(id);
  return value == std::numeric_limits<int64_t>::min() ? value + 1 : value;
}

inline std::optional<int64_t> ParseWideId(std::string_view text) {
  if (const auto value = ParseInt(text)) return value;
  uint64_t id = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, id);
  if (code != std::errc() || stop != end) return std::nullopt;
  return WideId(id);
}

}  // namespace lamina
