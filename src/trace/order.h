// SPDX-License-Identifier: Apache-2.0
//
// How processes are ordered, and how exactly times are.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/decimal.h"
#include "trace/trace.h"

namespace lamina::trace {

// Start and length are rounded apart, at worst to microseconds: events that
// touch or nest may overlap by this much.
inline constexpr int64_t kRoundingNs = 1000;

// In the order that people expect: by number, then by text.
struct Process {
  int64_t number = 0;
  std::string_view text;
  StringId pid;

  bool operator==(const Process& other) const { return pid == other.pid; }
  std::strong_ordering operator<=>(const Process& other) const {
    const auto by_number = number <=> other.number;
    return by_number != 0 ? by_number : text <=> other.text;
  }
};

inline Process ProcessOf(const Trace& trace, SliceId s) {
  const StringId pid = trace.TrackOf(s).pid;
  const std::string_view text = trace.Text(pid);
  return {ParseInt(text).value_or(std::numeric_limits<int64_t>::max()), text,
          pid};
}

}  // namespace lamina::trace
