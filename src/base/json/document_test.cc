// SPDX-License-Identifier: Apache-2.0
//
// The walk alone: its arrays of records hold nothing but numbers, which the
// test reads past itself.
#include "base/json/document.h"

#include <gtest/gtest.h>
#include <string>

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
}  // namespace lamina::json
