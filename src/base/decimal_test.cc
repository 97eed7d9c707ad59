// SPDX-License-Identifier: Apache-2.0
#include "base/decimal.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace lamina {
namespace {

int64_t Ns(std::string_view text) {
  const auto time = ParseMicroseconds(text);
  EXPECT_TRUE(time.has_value()) << text;
  return time ? time->ns : -1;
}

TEST(Decimal, MicrosecondsAreExact) {
  EXPECT_EQ(Ns("0"), 0);
  EXPECT_EQ(Ns("1"), 1000);
  EXPECT_EQ(Ns("1.5"), 1500);
  EXPECT_EQ(Ns("4458676524648.797"), 4458676524648797);
  // A double would be off by 43 ns here.
  EXPECT_EQ(Ns("1712106710123456.789"), 1712106710123456789);
  EXPECT_EQ(Ns("-0.005"), -5);
  EXPECT_EQ(Ns("1e3"), 1000000);
  EXPECT_EQ(Ns("12.5E-1"), 1250);
  EXPECT_EQ(Ns("9223372036854775.807"), INT64_MAX);
}

TEST(Decimal, RoundsHalfToEvenAndSaysSo) {
  const auto check = [](std::string_view text, int64_t ns) {
    const auto time = ParseMicroseconds(text);
    ASSERT_TRUE(time.has_value());
    EXPECT_EQ(time->ns, ns) << text;
    EXPECT_FALSE(time->exact) << text;
  };
  check("0.0005", 0);
  check("0.0015", 2);
  check("0.0025", 2);
  check("0.00250000000000000000000000000000001", 3);
  check("1.9999", 2000);
  EXPECT_TRUE(ParseMicroseconds("0.0010")->exact);
}

TEST(Decimal, RefusesWhatIsNoTime) {
  for (const std::string_view bad :
       {"", "-", ".", "1.2.3", "abc", "1e", "0x10", "1e300", "nan",
        "9223372036854775.808", "1 "}) {
    EXPECT_FALSE(ParseMicroseconds(bad).has_value()) << bad;
  }
  // Tiny and huge exponents end quickly.
  EXPECT_EQ(Ns("1e-999999999"), 0);
  EXPECT_FALSE(ParseMicroseconds("1e999999999").has_value());
}

// Against 128-bit arithmetic on random digits.
TEST(Decimal, MatchesSlowTwin) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const auto whole = static_cast<int64_t>(random() % 9000000000000000);
    const int digits = static_cast<int>(random() % 7);
    std::string text = std::to_string(whole);
    int64_t scaled = whole * 1000;
    if (digits > 0) {
      uint64_t fraction = 0;
      text += '.';
      uint64_t scale = 1;
      for (int d = 0; d < digits; ++d) {
        const unsigned digit = static_cast<unsigned>(random() % 10);
        text += static_cast<char>('0' + digit);
        fraction = fraction * 10 + digit;
        scale *= 10;
      }
      // fraction / scale microseconds = fraction * 1000 / scale ns.
      const uint64_t ns = fraction * 1000 / scale;
      const uint64_t rest = fraction * 1000 % scale;
      const bool up =
          rest * 2 > scale ||
          (rest * 2 == scale && (static_cast<uint64_t>(scaled) + ns) % 2 == 1);
      scaled += static_cast<int64_t>(ns + (up ? 1 : 0));
    }
    ASSERT_EQ(Ns(text), scaled) << text;
  }
}

TEST(Decimal, FormatIsTheInverse) {
  EXPECT_EQ(FormatMicroseconds(1234567), "1234.567");
  EXPECT_EQ(FormatMicroseconds(-5), "-0.005");
  EXPECT_EQ(FormatMicroseconds(0), "0.000");
  EXPECT_EQ(FormatMicroseconds(INT64_MIN), "-9223372036854775.808");
  for (const int64_t ns :
       {int64_t{1}, int64_t{999}, int64_t{1000}, int64_t{1712106710123456789}})
    EXPECT_EQ(Ns(FormatMicroseconds(ns)), ns);
}

TEST(Decimal, Integers) {
  EXPECT_EQ(ParseInt("42"), 42);
  EXPECT_EQ(ParseInt("-7"), -7);
  EXPECT_EQ(ParseInt("3.0"), 3);
  EXPECT_EQ(ParseInt("1e3"), 1000);
  EXPECT_FALSE(ParseInt("3.5").has_value());
  EXPECT_FALSE(ParseInt("").has_value());
  EXPECT_FALSE(ParseInt("99999999999999999999").has_value());
}

TEST(Decimal, DoublesPrintAsInPython) {
  EXPECT_EQ(FormatDouble(0.1), "0.1");
  EXPECT_EQ(FormatDouble(16), "16.0");
  EXPECT_EQ(FormatDouble(1e-7), "1e-07");
  EXPECT_EQ(FormatDouble(1e16), "1e+16");
  EXPECT_EQ(FormatDouble(1.6752), "1.6752");
  EXPECT_EQ(FormatDouble(-0.0), "-0.0");
  EXPECT_EQ(FormatDouble(9999999999999998), "9999999999999998.0");
}

// The standard library has the same shortest digits in either form.
std::string ByStandard(double value) {
  const double size = std::fabs(value);
  const bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  char text[40];
  const auto [end, code] = std::to_chars(
      text, text + sizeof(text), value,
      fixed ? std::chars_format::fixed : std::chars_format::scientific);
  EXPECT_EQ(code, std::errc());
  std::string out(text, end);
  return fixed && out.find('.') == std::string::npos ? out + ".0" : out;
}

TEST(Decimal, DoublesPrintAsByTheStandardLibrary) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const uint64_t bits = random();
    const double any = std::bit_cast<double>(bits);
    for (const double value : {any, static_cast<double>(bits >> bits % 64),
                               static_cast<double>(bits % 1000000) / 1000,
                               1e16 + static_cast<double>(bits % 100) - 50}) {
      if (std::isfinite(value)) {
        ASSERT_EQ(FormatDouble(value), ByStandard(value));
      }
    }
  }
}

TEST(Decimal, HumanForms) {
  EXPECT_EQ(HumanTime(999), "999 ns");
  EXPECT_EQ(HumanTime(1234567), "1.23 ms");
  EXPECT_EQ(HumanTime(123456789012), "123 s");
  EXPECT_EQ(HumanBytes(2048), "2.00 KiB");
  EXPECT_EQ(HumanCount(12345), "12.3 k");
  EXPECT_EQ(GroupDigits(-1234567), "-1,234,567");
}

}  // namespace
}  // namespace lamina
