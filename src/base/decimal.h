// SPDX-License-Identifier: Apache-2.0
//
// Exact conversions between decimal text and integers. Times in traces are
// decimal microseconds; a double holds 1.7e15 us only to 0.25 us, so digits
// are parsed as digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lamina {

struct ParsedTime {
  int64_t ns = 0;
  bool exact = true;  // false when digits below a nanosecond were rounded
};

// Decimal microseconds ("4458676524648.797", "1e3", "-0.5") to nanoseconds,
// rounded half to even. Nothing for text that is no number or out of the
// int64 range.
std::optional<ParsedTime> ParseMicroseconds(std::string_view text);

// A decimal integer; "12.0" and "1e3" are accepted when the value is whole.
std::optional<int64_t> ParseInt(std::string_view text);

std::optional<double> ParseDouble(std::string_view text);

// Nanoseconds as decimal microseconds with exactly three decimals:
// 1234567 -> "1234.567", -5 -> "-0.005".
std::string FormatMicroseconds(int64_t ns);
void AppendMicroseconds(std::string& out, int64_t ns);

// The shortest decimal text that reads back to the same double, in the form
// that Python's repr() gives ("0.1", "1e-07", "16.0").
std::string FormatDouble(double value);

// The same without a trailing ".0".
void AppendNumber(std::string& out, double value);
void AppendInt(std::string& out, int64_t value);

// Human form with at most three significant digits after scaling:
// 1234567 ns -> "1.23 ms", 2048 bytes -> "2.00 KiB", 12345 -> "12.3 k".
std::string HumanTime(int64_t ns);
std::string HumanBytes(double bytes);
std::string HumanCount(double count);

// Digits grouped by thin commas: 1234567 -> "1,234,567".
std::string GroupDigits(int64_t value);

}  // namespace lamina
