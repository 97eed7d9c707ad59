// SPDX-License-Identifier: Apache-2.0

#include "base/decimal.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/compile.h>
#include <fmt/format.h>
#include <limits>

#include "base/counted.h"
#include "base/text.h"

namespace lamina {

namespace {

// value = digits * 10^exponent, digits without leading zeros, at most 25
// significant digits kept; more set `dropped` when one of them is not zero.
struct Decimal {
  bool negative = false;
  unsigned __int128 digits = 0;
  int exponent = 0;
  bool dropped = false;
};

constexpr unsigned __int128 kMaxDigits = []() {
  unsigned __int128 value = 1;
  for (int i = 0; i < 25; ++i) value *= 10;
  return value;
}();

std::optional<Decimal> ParseDecimal(std::string_view text) {
  Decimal d;
  size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+'))
    d.negative = text[i++] == '-';
  bool any = false;
  bool point = false;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !point) {
      point = true;
      continue;
    }
    if (!IsDigit(text[i])) break;
    any = true;
    const unsigned digit = static_cast<unsigned>(text[i] - '0');
    if (d.digits < kMaxDigits) {
      d.digits = d.digits * 10 + digit;
      if (point) --d.exponent;
    } else {
      if (digit != 0) d.dropped = true;
      if (!point) ++d.exponent;
    }
  }
  if (!any) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    bool negative = false;
    if (i < text.size() && (text[i] == '-' || text[i] == '+'))
      negative = text[i++] == '-';
    if (i == text.size()) return std::nullopt;
    int exponent = 0;
    for (; i < text.size() && IsDigit(text[i]); ++i)
      exponent = exponent < 10000 ? exponent * 10 + (text[i] - '0') : exponent;
    d.exponent += negative ? -exponent : exponent;
  }
  if (i != text.size()) return std::nullopt;
  return d;
}

// round(digits * 10^exponent), half to even.
std::optional<int64_t> ToInt64(const Decimal& d, bool& exact) {
  unsigned __int128 value = d.digits;
  exact = !d.dropped;
  if (value != 0 && d.exponent > 0) {
    if (d.exponent > 25) return std::nullopt;
    for (int i = 0; i < d.exponent; ++i) {
      value *= 10;
      if (value > kMaxDigits) return std::nullopt;
    }
  } else if (d.exponent < 0) {
    unsigned __int128 divisor = 1;
    bool below_all = false;
    for (int i = 0; i > d.exponent; --i) {
      divisor *= 10;
      if (divisor > kMaxDigits * 10) {
        below_all = true;
        break;
      }
    }
    if (below_all) {
      if (value != 0) exact = false;
      value = 0;
    } else {
      const unsigned __int128 rest = value % divisor;
      value /= divisor;
      if (rest != 0) exact = false;
      const unsigned __int128 twice = rest * 2;
      if (twice > divisor || (twice == divisor && (d.dropped || value % 2)))
        ++value;
    }
  }
  constexpr auto kMax =
      static_cast<unsigned __int128>(std::numeric_limits<int64_t>::max());
  if (value > kMax) return std::nullopt;
  const auto magnitude = static_cast<int64_t>(value);
  return d.negative ? -magnitude : magnitude;
}

std::string Scaled(double value, double base,
                   const std::array<const char*, 6>& units) {
  size_t unit = 0;
  while (std::fabs(value) >= base && unit + 1 < units.size()) {
    value /= base;
    ++unit;
  }
  const double size = std::fabs(value);
  const char* format = size >= 100  ? "{:.0f}{}"
                       : size >= 10 ? "{:.1f}{}"
                                    : "{:.2f}{}";
  return fmt::format(fmt::runtime(format), value, units[unit]);
}

}  // namespace

std::optional<ParsedTime> ParseMicroseconds(std::string_view text) {
  // The common case: at most 15 digits, a point, at most three digits.
  size_t i = 0;
  int64_t value = 0;
  while (i < text.size() && i < 15 && IsDigit(text[i]))
    value = value * 10 + (text[i++] - '0');
  if (i > 0) {
    if (i == text.size()) return ParsedTime{value * 1000, true};
    const size_t decimals = text.size() - i - 1;
    if (text[i] == '.' && decimals >= 1 && decimals <= 3) {
      size_t k = i + 1;
      while (k < text.size() && IsDigit(text[k]))
        value = value * 10 + (text[k++] - '0');
      if (k == text.size()) {
        constexpr std::array<int64_t, 4> kScale = {1000, 100, 10, 1};
        return ParsedTime{value * kScale[decimals], true};
      }
    }
  }
  auto decimal = ParseDecimal(text);
  if (!decimal) return std::nullopt;
  decimal->exponent += 3;
  ParsedTime time;
  const auto ns = ToInt64(*decimal, time.exact);
  if (!ns) return std::nullopt;
  time.ns = *ns;
  return time;
}

namespace {

[[gnu::noinline]] std::optional<int64_t> ParseAnyInt(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code == std::errc() && stop == end) return value;
  const auto decimal = ParseDecimal(text);
  if (!decimal) return std::nullopt;
  bool exact = true;
  const auto whole = ToInt64(*decimal, exact);
  return exact ? whole : std::nullopt;
}

}  // namespace

std::optional<int64_t> ParseInt(std::string_view text) {
  // Nearly all are a few digits that cannot overflow.
  constexpr size_t kSafeDigits = 18;
  int64_t value = 0;
  size_t digits = 0;
  while (digits < text.size() && digits < kSafeDigits && text[digits] >= '0' &&
         text[digits] <= '9')
    value = value * 10 + (text[digits++] - '0');
  if (digits > 0 && digits == text.size()) return value;
  // Not inlined: with all results in one function the compiler puts the
  // optional into memory, which took most of the time of a short number.
  return ParseAnyInt(text);
}

std::optional<double> ParseDouble(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end) return std::nullopt;
  return value;
}

void AppendMicroseconds(std::string& out, int64_t ns) {
  uint64_t magnitude =
      ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  if (ns < 0) out += '-';
  std::array<char, 24> buffer;
  const auto [end, code] = std::to_chars(
      buffer.data(), buffer.data() + buffer.size(), magnitude / 1000);
  (void)code;
  out.append(buffer.data(), end);
  const auto rest = static_cast<unsigned>(magnitude % 1000);
  out += '.';
  out += static_cast<char>('0' + rest / 100);
  out += static_cast<char>('0' + rest / 10 % 10);
  out += static_cast<char>('0' + rest % 10);
}

std::string FormatMicroseconds(int64_t ns) {
  std::string out;
  AppendMicroseconds(out, ns);
  return out;
}

std::string FormatDouble(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // As repr(): the exponent form below 1e-4 and from 1e16 on. std::to_chars
  // would bring tables of 128 kB.
  std::array<char, 40> buffer;
  std::string out(buffer.data(),
                  fmt::format_to(buffer.data(), FMT_COMPILE("{}"), value));
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

void AppendNumber(std::string& out, double value) {
  std::string text = FormatDouble(value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  out += text;
}

void AppendInt(std::string& out, int64_t value) {
  std::array<char, 24> buffer;
  const auto [end, code] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  (void)code;
  out.append(buffer.data(), end);
}

std::string HumanTime(int64_t ns) {
  const double value = static_cast<double>(ns);
  const double size = std::fabs(value);
  if (size < 1e3) return fmt::format("{} ns", ns);
  const auto [scale, unit] = size < 1e6   ? std::pair(1e3, " us")
                             : size < 1e9 ? std::pair(1e6, " ms")
                                          : std::pair(1e9, " s");
  const double scaled = value / scale;
  const double magnitude = std::fabs(scaled);
  const char* format = magnitude >= 100  ? "{:.0f}{}"
                       : magnitude >= 10 ? "{:.1f}{}"
                                         : "{:.2f}{}";
  return fmt::format(fmt::runtime(format), scaled, unit);
}

std::string HumanBytes(double bytes) {
  if (std::fabs(bytes) < 1024) return fmt::format("{:.0f} B", bytes);
  return Scaled(bytes, 1024, {" B", " KiB", " MiB", " GiB", " TiB", " PiB"});
}

std::string HumanCount(double count) {
  if (std::fabs(count) < 1000) return fmt::format("{:.0f}", count);
  return Scaled(count, 1000, {"", " k", " M", " G", " T", " P"});
}

std::string GroupDigits(int64_t value) {
  const std::string digits = fmt::format("{}", value);
  std::string out;
  const size_t start = value < 0 ? 1 : 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > start && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string Counted(uint64_t count, std::string_view noun,
                    std::string_view plural) {
  std::string out = GroupDigits(static_cast<int64_t>(count)) + " ";
  if (count == 1) return out.append(noun);
  return plural.empty() ? out.append(noun) + "s" : out.append(plural);
}

}  // namespace lamina
