// SPDX-License-Identifier: Apache-2.0
//
// The walk alone: its arrays of records hold nothing but numbers, which the
// test reads past itself.

#include "base/json/document.h"

#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "base/json/strict.h"
#include "base/json/writer.h"

namespace lamina::json {

namespace {

// Writes down what the walk says, a line each.
class Log final : public Router {
 public:
  Action Route(Path path, char) override {
    const std::string last = path.empty() ? "" : path.back();
    if (last.starts_with("records")) return Action::kRecords;
    if (last.starts_with("skip")) return Action::kSkip;
    if (path.empty() || last.starts_with("in")) return Action::kDescend;
    return Action::kCapture;
  }
  void Captured(Path path, std::string_view raw, uint64_t offset) override {
    for (const std::string& part : path) text += "/" + part;
    text += "=" + std::string(raw) + "@" + std::to_string(offset) + "\n";
  }
  void Lost(std::string_view reason, uint64_t offset, uint64_t) override {
    text += "lost@" + std::to_string(offset) + " " + std::string(reason) + "\n";
  }
  std::string_view recovery_key() const override { return "\"records\""; }

  std::string text;
};

std::string Walk(std::string_view input) {
  Log log;
  const auto source = OpenMemory("doc", input);
  ByteWindow window(source->get());
  Document document(&window, &log);
  while (true) {
    const auto records = document.NextArray();
    if (!records) return log.text + records.error().ToString() + "\n";
    if (!*records) return log.text;
    log.text += "records@" + std::to_string(window.offset()) + "\n";
    const size_t end = window.text().find(']');
    if (end == std::string_view::npos) {
      window.Close();
      document.Abandon();
    } else {
      window.Consume(end + 1);
      document.LeaveArray();
    }
  }
}

TEST(Document, GivesEveryValueItsPath) {
  EXPECT_EQ(Walk("\xEF\xBB\xBF{\"a\": 1, \"in\": {\"b\": [2], "
                 "\"records\": [1, 2], \"c\": null}, \"d\": \"x\"}"),
            "/a=1@9\n"
            "/in/b=[2]@24\n"
            "records@41\n"
            "/in/c=null@53\n"
            "/d=\"x\"@65\n");
}

TEST(Document, NumbersTheElementsOfAnArray) {
  EXPECT_EQ(Walk("[1, [2], 3]"), "/0=1@1\n/1=[2]@4\n/2=3@9\n");
}

TEST(Document, ReadsOnBehindEveryArrayOfRecords) {
  EXPECT_EQ(Walk("{\"records\": [], \"in\": {\"records 2\": [1]}, \"z\": 1}"),
            "records@13\nrecords@37\n/z=1@47\n");
}

// A skipped value ends where it ends, however the blocks of the input cut it.
TEST(Document, SkipsAcrossBlocks) {
  constexpr size_t kBlock = size_t{256} << 10;
  const std::string tail = "\\\\\\\"}], \\\\\"";
  for (size_t before = kBlock - 30; before < kBlock + 5; ++before) {
    const std::string text =
        "{\"skip\":\"" + std::string(before, 'x') + tail + ",\"z\":1}";
    EXPECT_EQ(Walk(text), "/z=1@" + std::to_string(text.size() - 2) + "\n");
  }
}

TEST(Document, SaysWhereItWasCut) {
  const std::string_view ends = " the file ends inside the document\n";
  for (const std::string_view text :
       {"{\"skip\": 12", "{\"skip\": [1", "{\"skip\": \"a",
        "{\"skip\":", "{\"skip\": {}", "{\"in\": {\"skip\": {}}"}) {
    EXPECT_EQ(Walk(text),
              "lost@" + std::to_string(text.size()) + std::string(ends))
        << text;
  }
  EXPECT_EQ(Walk("{\"a\": [1"), "lost@6" + std::string(ends));
}

TEST(Document, GivesUpWhatIsBrokenBehindTheRecords) {
  EXPECT_EQ(Walk("{\"records\": [1] \"a\": 2}"),
            "records@13\nlost@16 the document is broken behind the records\n");
  EXPECT_EQ(Walk("{\"records\": [1]}}"),
            "records@13\nlost@16 unknown bytes follow the document\n");
}

TEST(Document, RecoversOnceInFrontOfTheRecords) {
  EXPECT_EQ(Walk("{\"a\" 1, \"in\": {\"records\": [1]}}"),
            "lost@1 part of the document outside the records is broken\n"
            "records@27\n"
            "lost@30 unknown bytes follow the document\n");
  EXPECT_EQ(Walk("{\"a\" 1, \"records\" 2}"),
            "lost@1 part of the document outside the records is broken\n"
            "doc:8: not a JSON document: expected a key and ':', found '\"'; "
            "give the JSON file that the profiler wrote\n");
}

TEST(Document, RefusesNestingWithoutEnd) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "{\"in\":";
  EXPECT_EQ(Walk(text), "doc:6000: the document is nested too deeply\n");
}

// A key without end is known to be one after 128 KiB; each further block would
// have it looked through once more.
TEST(Document, GivesUpAKeyWithoutEnd) {
  const std::string limit(size_t{64} << 10, 'k');
  EXPECT_EQ(Walk("{\"in" + limit.substr(2) + "\": {\"records\": []}}"),
            "records@65554\n");
  EXPECT_EQ(Walk("{\"" + limit + limit + "\": 1, \"records\": []}"),
            "lost@1 part of the document outside the records is broken\n"
            "records@131092\n");

  class Deaf final : public Router {
    Action Route(Path, char) override { return Action::kDescend; }
    void Captured(Path, std::string_view, uint64_t) override {}
    void Lost(std::string_view, uint64_t, uint64_t) override {}
  };
  for (const std::string& text :
       {"{\"" + std::string(size_t{4} << 20, 'k'),
        "{\"k\"" + std::string(size_t{4} << 20, ' ')}) {
    Deaf router;
    const auto source = OpenMemory("doc", text);
    ByteWindow window(source->get());
    EXPECT_FALSE(Document(&window, &router).NextArray().has_value());
    EXPECT_LE((*source)->stored_position(), size_t{1} << 20);
  }
}

}  // namespace

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
