// SPDX-License-Identifier: Apache-2.0
#include "emit/chrome/filter.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

namespace lamina::emit {
namespace {

using Json = nlohmann::json;

std::string Copied(const std::string& text,
                   const std::function<bool(const Record&)>& keep) {
  auto source = OpenMemory("memory", text);
  EXPECT_TRUE(source);
  std::string out;
  auto sink = CreateStringSink(&out);
  EXPECT_TRUE(CopyRecords(std::move(*source), *sink, keep));
  EXPECT_TRUE(sink->Close());
  return out;
}

TEST(Filter, KeepsWhatIsWantedAndWhatStandsAround) {
  const std::string text =
      "{\"a\\\"b\": [1, {\"x\": 2}], \"traceEvents\" : [ {\"i\":0}, {\"i\":1}"
      " ,\n{\"i\":2, \"s\":\"},{\"} ]  , \"z\":1.50}\n";
  const auto odd = [](const Record& r) { return r.number % 2 == 1; };
  EXPECT_EQ(Copied(text, odd),
            "{\n\"a\\\"b\": [1, {\"x\": 2}],\n\"traceEvents\": [\n{\"i\":1}\n]"
            ",\n\"z\": 1.50}\n");
  const auto none = [](const Record&) { return false; };
  EXPECT_EQ(Json::parse(Copied(text, none))["traceEvents"], Json::array());
  EXPECT_EQ(Copied("[{\"i\":0},{\"i\":1}]", odd), "[\n{\"i\":1}]\n");
  EXPECT_EQ(Json::parse(Copied("[]", odd)), Json::array());
}

TEST(Filter, OffsetsAreThoseOfTheInput) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::string text = round % 2 ? "[" : "{\"k\":0,\"traceEvents\":[";
    std::vector<size_t> offsets;
    Json expected = Json::array();
    std::vector<bool> keep;
    const size_t count = 1 + random() % 30;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) text += random() % 2 ? "," : " ,\n ";
      offsets.push_back(text.size());
      const Json record = {{"i", i}, {"s", std::string(random() % 9, ']')}};
      text += record.dump();
      keep.push_back(random() % 2);
      if (keep.back()) expected.push_back(record);
    }
    text += round % 2 ? "]" : "]}";
    const Json out = Json::parse(Copied(text, [&](const Record& r) {
      EXPECT_EQ(r.offset, offsets[r.number]);
      return keep[r.number];
    }));
    EXPECT_EQ(round % 2 ? out : out["traceEvents"], expected);
  }
}

// A broken record is left out, its neighbours are not.
TEST(Filter, WritesGoodJsonFromBrokenJson) {
  const std::string text =
      "{\"traceEvents\":[{\"i\":0},{\"i\": oops},{\"s\":\"a\x01\"},{\"i\":3}]";
  const Json out =
      Json::parse(Copied(text, [](const Record&) { return true; }));
  ASSERT_EQ(out["traceEvents"].size(), 3U);
  EXPECT_EQ(out["traceEvents"][2]["i"], 3);
}

TEST(Filter, FindsMembers) {
  const std::string_view record =
      "{ \"ph\" : \"X\",\"args\":{\"ts\":1},\"ts\":12.5 }";
  EXPECT_EQ(MemberOf(record, "ph"), "\"X\"");
  EXPECT_EQ(MemberOf(record, "ts"), "12.5");
  EXPECT_EQ(MemberOf(record, "args"), "{\"ts\":1}");
  EXPECT_EQ(MemberOf(record, "none"), "");
  EXPECT_EQ(MemberOf("{\"a\" 1}", "a"), "");
  EXPECT_EQ(MemberOf("", "a"), "");
}

}  // namespace
}  // namespace lamina::emit
