// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"

#include <gtest/gtest.h>

#include "base/shorten.h"

namespace lamina {
namespace {

TEST(Escape, TerminalHidesControlAndDirectionCharacters) {
  EXPECT_EQ(EscapeTerminal("plain <text> 42"), "plain <text> 42");
  EXPECT_EQ(EscapeTerminal("\x1b[31mred\x07"), "\\x1b[31mred\\x07");
  EXPECT_EQ(EscapeTerminal("a\nb\tc"), "a\\nb\\tc");
  EXPECT_EQ(EscapeTerminal("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  // U+202E reverses the text behind it.
  EXPECT_EQ(EscapeTerminal("a\xE2\x80\xAE"
                           "b"),
            "a\\u202eb");
  // C1 controls and broken UTF-8.
  EXPECT_EQ(EscapeTerminal("\xC2\x9B"), "\\x9b");
  EXPECT_EQ(EscapeTerminal("\xFF\xC3"), "\\xff\\xc3");
}

TEST(Escape, JsonIsAlwaysValid) {
  EXPECT_EQ(JsonQuote("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\n\\u0001\"");
  EXPECT_EQ(JsonQuote("\xFFx"), "\"\xEF\xBF\xBDx\"");
  EXPECT_EQ(JsonQuote("\xE2\x82\xAC"), "\"\xE2\x82\xAC\"");
}

TEST(Escape, CsvQuotesOnlyWhereNeeded) {
  std::string out;
  AppendCsvField(out, "plain");
  out += '|';
  AppendCsvField(out, "a,b\"c");
  EXPECT_EQ(out, "plain|\"a,b\"\"c\"");
}

TEST(Escape, SafeCsvStopsFormulas) {
  const auto safe = [](std::string_view text) {
    std::string out;
    AppendSafeCsvField(out, text);
    return out;
  };
  EXPECT_EQ(safe("=1+1"), "'=1+1");
  EXPECT_EQ(safe("-1+cmd"), "'-1+cmd");
  EXPECT_EQ(safe("@x"), "'@x");
  EXPECT_EQ(safe("-12.5"), "-12.5");
  EXPECT_EQ(safe("-"), "-");
  EXPECT_EQ(safe("plain"), "plain");
}

TEST(Escape, MarkdownLeavesNoMarkup) {
  EXPECT_EQ(EscapeMarkdown("a_b <c> [d](e) `f` #1\n|"),
            "a\\_b \\<c\\> \\[d\\](e) \\`f\\` \\#1\\\\n\\|");
  EXPECT_EQ(MarkdownCode(""), "");
  EXPECT_EQ(MarkdownCode("a|b<c>"), "`a\\|b<c>`");
  EXPECT_EQ(MarkdownCode("`x`` y"), "``` `x`` y ```");
}

TEST(Escape, XmlLeavesNoMarkup) {
  EXPECT_EQ(EscapeXml("<a b='\"&\">\x01"),
            "&lt;a b=&#39;&quot;&amp;&quot;&gt;\xEF\xBF\xBD");
}

TEST(Escape, PythonLikeRepr) {
  const auto repr = [](std::string_view text) {
    std::string out;
    AppendPythonQuoted(out, text);
    return out;
  };
  EXPECT_EQ(repr("a'b"), "\"a'b\"");
  EXPECT_EQ(repr("a'b\"c"), "'a\\'b\"c'");
  EXPECT_EQ(repr("x\n\\"), "'x\\n\\\\'");
}

TEST(Escape, ShortenKeepsCharactersWhole) {
  EXPECT_EQ(Shorten("abcdef", 10), "abcdef");
  EXPECT_EQ(Shorten("abcdef", 3), "abc...");
  EXPECT_EQ(Shorten("a\xC3\xBC"
                    "b",
                    2),
            "a...");
}

TEST(Escape, DisplayWidthCountsCells) {
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("\xE6\xBC\xA2"), 2u);  // a wide character
  EXPECT_EQ(DisplayWidth("e\xCC\x81"), 1u);     // with a combining mark
  EXPECT_EQ(DisplayPrefix("ab\xE6\xBC\xA2", 3), "ab");
}

// All code points survive a round trip, all others are refused.
TEST(Escape, Utf8RoundTrip) {
  for (char32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 97) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    AppendUtf8(text, c);
    size_t pos = 0;
    ASSERT_EQ(DecodeUtf8(text, pos), c);
    ASSERT_EQ(pos, text.size());
  }
  for (const std::string_view bad : {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                                     "\xF4\x90\x80\x80", "\x80", "\xE2\x82"}) {
    size_t pos = 0;
    EXPECT_EQ(DecodeUtf8(bad, pos), 0xFFFFFFFF);
    EXPECT_EQ(pos, 1u);
  }
}

TEST(Names, AreAlikeWithoutTheirNumbers) {
  EXPECT_EQ(WithoutNumbers("iteration 3"), WithoutNumbers("iteration 17"));
  EXPECT_EQ(WithoutNumbers("layers.12.w1"), "layers.#.w#");
  EXPECT_EQ(WithoutNumbers("ProfilerStep#3"), "ProfilerStep#");
  EXPECT_EQ(WithoutNumbers(""), "");
}

}  // namespace
}  // namespace lamina
