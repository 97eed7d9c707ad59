// SPDX-License-Identifier: Apache-2.0
#include "base/json/writer.h"

#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

namespace lamina::json {
namespace {

std::string Sample(Writer::Spaces spaces, Writer::Lines lines, size_t indent) {
  std::string out;
  Writer w(out, spaces, indent);
  w.Object(lines);
  w.Int("a", 1);
  w.Array("b", lines);
  w.Text("x");
  w.Real(0.5);
  w.Object();
  w.Close();
  w.Close();
  w.Array("c", lines);
  w.Close();
  w.Microseconds("d_us", 1234567);
  w.Close();
  return out;
}

TEST(JsonWriter, PlacesCommasAndLines) {
  using enum Writer::Spaces;
  using enum Writer::Lines;
  EXPECT_EQ(Sample(kNone, kOne, 0),
            R"({"a":1,"b":["x",0.5,{}],"c":[],"d_us":1234.567})");
  EXPECT_EQ(Sample(kAfter, kOne, 0),
            R"({"a": 1, "b": ["x", 0.5, {}], "c": [], "d_us": 1234.567})");
  EXPECT_EQ(Sample(kAfter, kEach, 1),
            "{\n \"a\": 1,\n \"b\": [\n  \"x\",\n  0.5,\n  {}\n ],\n"
            " \"c\": [],\n \"d_us\": 1234.567\n}");
}

TEST(JsonWriter, ANewLineInAnObjectOfOneLine) {
  std::string out;
  Writer w(out, Writer::Spaces::kAfter, 1);
  w.Object();
  w.Bool("a", true);
  w.NewLine();
  w.Ints("b", std::vector<int>{1, 2});
  w.Bool("c", false);
  w.Close();
  EXPECT_EQ(out, "{\"a\": true,\n \"b\": [1, 2], \"c\": false}");
}

TEST(JsonWriter, HasNoFormForInfinity) {
  std::string out;
  Writer w(out);
  w.Array();
  w.Real(std::numeric_limits<double>::infinity());
  w.Real(std::numeric_limits<double>::quiet_NaN());
  w.Null();
  w.Close();
  EXPECT_EQ(out, "[null,null,null]");
}

// A random document, and what a library makes of the same.
class Both {
 public:
  explicit Both(uint32_t seed) : random_(seed) {}

  nlohmann::json Value(Writer& w, int depth) {
    const int kind = Below(depth > 3 ? 4 : 6);
    if (kind == 0) {
      const auto number = static_cast<int64_t>(random_()) - (1LL << 31);
      w.Int(number);
      return number;
    }
    if (kind == 1) {
      w.Bool(true);
      return true;
    }
    if (kind == 2) {
      w.Null();
      return nullptr;
    }
    if (kind == 3) {
      const std::string text = Text();
      w.Text(text);
      return text;
    }
    if (Below(4) == 0) w.NewLine();
    const auto lines =
        Below(2) == 0 ? Writer::Lines::kOne : Writer::Lines::kEach;
    nlohmann::json out;
    if (kind == 4) {
      out = nlohmann::json::array();
      w.Array(lines);
      for (int i = Below(5); i > 0; --i) out.push_back(Value(w, depth + 1));
    } else {
      out = nlohmann::json::object();
      w.Object(lines);
      for (int i = Below(5); i > 0; --i) {
        const std::string key = Text() + std::to_string(i);
        w.Key(key);
        out[key] = Value(w, depth + 1);
      }
    }
    w.Close();
    return out;
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % n); }
  std::string Text() {
    static constexpr std::string_view kCharacters = "a\"\\\n\x01,:{}[] <";
    std::string out;
    for (int i = Below(6); i > 0; --i)
      out += kCharacters[random_() % kCharacters.size()];
    return out;
  }
  std::mt19937 random_;
};

TEST(JsonWriter, WritesWhatALibraryReads) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::string out;
    Writer w(out,
             seed % 2 == 0 ? Writer::Spaces::kNone : Writer::Spaces::kAfter,
             seed % 3);
    const nlohmann::json expected = Both(seed).Value(w, 0);
    ASSERT_EQ(nlohmann::json::parse(out), expected) << out;
  }
}

}  // namespace
}  // namespace lamina::json
