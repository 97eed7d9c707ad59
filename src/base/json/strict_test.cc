// SPDX-License-Identifier: Apache-2.0
#include "base/json/strict.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

namespace lamina::json {
namespace {

// The library's parser is the twin: it takes exactly RFC 8259.
bool Twin(std::string_view text) { return nlohmann::json::accept(text); }

bool InPieces(std::string_view text, size_t size) {
  StrictCheck check;
  for (size_t i = 0; i < text.size(); i += size) {
    if (!check.Feed(text.substr(i, size))) return false;
  }
  return check.Finish();
}

TEST(Strict, AgreesWithALibraryOnWhatIsJson) {
  const std::vector<std::string> texts = {"",
                                          " ",
                                          "1",
                                          " 1 ",
                                          "083",
                                          "-0",
                                          "-",
                                          "-01",
                                          "1.",
                                          ".5",
                                          "1.5",
                                          "1e",
                                          "1e5",
                                          "1E+5",
                                          "1e+",
                                          "1.e3",
                                          "0.0",
                                          "00",
                                          "+1",
                                          "true",
                                          "tru",
                                          "truex",
                                          "null",
                                          "nul",
                                          "NaN",
                                          "-Infinity",
                                          "false ",
                                          "\"a\"",
                                          "\"a",
                                          "\"\\x\"",
                                          "\"\\u12g4\"",
                                          "\"\\u1234\"",
                                          "\"\\\"",
                                          "\"\\\\\"",
                                          "\"a\nb\"",
                                          "\"\x01\"",
                                          "\"\xFF\"",
                                          "\"\xC3\xA9\"",
                                          "\"\xE2\x82\xAC\"",
                                          "\"\xF0\x9F\x98\x80\"",
                                          "\"\xC3\"",
                                          "{}",
                                          "{ }",
                                          "[]",
                                          "[1,]",
                                          "[,1]",
                                          "[1 2]",
                                          "[1,2]",
                                          "{\"a\":1}",
                                          "{\"a\":1,}",
                                          "{\"a\" 1}",
                                          "{a:1}",
                                          "{\"a\":}",
                                          "[[[]]]",
                                          "[[[]]",
                                          "[]]",
                                          "{} {}",
                                          "{}x",
                                          "[{\"ts\":083}]"};
  for (const std::string& text : texts) {
    EXPECT_EQ(IsStrict(text), Twin(text)) << text;
    for (const size_t size : {1, 2, 3, 7})
      EXPECT_EQ(InPieces(text, size), Twin(text)) << text << " by " << size;
  }
  // Whatever stands around what is right.
  std::mt19937 random(5);
  const std::string whole =
      "{\"traceEvents\":[{\"ts\":1.5e3,\"n\":\"a\\u00e9\\n\xC3\xA9\"},{\"v\":"
      "[true,null,-0.25]}],\"x\":10}";
  ASSERT_TRUE(Twin(whole));
  for (int i = 0; i < 20000; ++i) {
    std::string text = whole;
    for (int n = 0; n < 1 + i % 3; ++n) {
      const size_t at = random() % text.size();
      constexpr std::string_view kBytes = "0123456789{}[],:\"\\-+.eEtnu \n\xC3";
      const char c = kBytes[random() % kBytes.size()];
      if (random() % 3 == 0) text.erase(at, 1 + random() % 3);
      if (random() % 2 == 0 || text.empty())
        text.insert(at % (text.size() + 1), 1, c);
      else
        text[at % text.size()] = c;
    }
    ASSERT_EQ(InPieces(text, 1 + random() % 9), Twin(text)) << text;
  }
}

TEST(Strict, MendsWhatReadersAccept) {
  EXPECT_EQ(MakeStrict("{\"ts\": 083, \"d\": -007.50}"),
            "{\"ts\": 83, \"d\": -7.50}");
  EXPECT_EQ(MakeStrict("[000,1.,2.e1,3e,4e+]"), "[0,1,2e1,3,4]");
  EXPECT_EQ(MakeStrict("[NaN,-inf,Infinity,nan]"), "[null,null,null,null]");
  EXPECT_EQ(MakeStrict("\"C:\\path\\u12\""), "\"C:\\\\path\\\\u12\"");
  EXPECT_EQ(MakeStrict("\"a\tb\\\nc\""), "\"a\\u0009b\\\\\\u000ac\"");
  EXPECT_EQ(MakeStrict("\"\xFF\""), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(MakeStrict("{\"a\":1"), std::nullopt);
  EXPECT_EQ(MakeStrict("{\"a\" 1}"), std::nullopt);
  // What may be written stays as it is.
  for (const char* text :
       {"{}", "[1, 2.5e-3 ,\"\\u00e9\\/\"]", "-0", "\"NaN\""})
    EXPECT_EQ(MakeStrict(text), text);
}

}  // namespace
}  // namespace lamina::json
