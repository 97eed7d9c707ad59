// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

#include "emit/chrome/copy.h"
#include "emit/chrome/filter.h"

namespace lamina::emit {

namespace {

std::string Copied(const std::string& text,
                   const std::vector<Addition>& additions, bool* ok = nullptr) {
  auto source = OpenMemory("memory", text);
  EXPECT_TRUE(source);
  std::string out;
  auto sink = CreateStringSink(&out);
  const Status status = CopyWithAdditions(**source, *sink, additions);
  EXPECT_TRUE(sink->Close());
  if (ok != nullptr) {
    *ok = status.has_value();
  } else {
    EXPECT_TRUE(status);
  }
  return out;
}

TEST(Copy, AddsNothingElse) {
  const std::string text =
      "{\"traceEvents\" : [ {\"name\":\"a\\u0041\", \"ts\": 1.50, \"args\" : "
      "{ \"x\" : [1,{}] }},\n {\"name\":\"b\"} , {}, {\"args\":{ }}]  ,\"z\":1"
      "e5}\n\n";
  EXPECT_EQ(Copied(text, {}), text);
  const size_t a = text.find("{\"name\":\"a");
  const size_t b = text.find("{\"name\":\"b");
  const size_t c = text.find("{}, {\"args");
  const size_t d = text.find("{\"args\":{ }}");
  EXPECT_EQ(Copied(text, {{a, "\"n\":1", "{\"new\":1},"},
                          {b, "\"n\":2", ""},
                          {c, "\"n\":3", ""},
                          {d, "\"n\":4", ""}}),
            "{\"traceEvents\" : [ {\"new\":1},{\"name\":\"a\\u0041\", \"ts\": "
            "1.50, \"args\" : {\"n\":1, \"x\" : [1,{}] }},\n {\"name\":\"b\","
            "\"args\":{\"n\":2}} , {\"args\":{\"n\":3}}, {\"args\":{\"n\":4 }}]"
            "  ,\"z\":1e5}\n\n");
}

// Whatever is added, the rest of the document means the same.
TEST(Copy, MeansTheSame) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    std::string text = "[";
    std::vector<Addition> additions;
    const int count = 1 + static_cast<int>(random() % 20);
    for (int i = 0; i < count; ++i) {
      if (i > 0) text += random() % 2 ? "," : " ,\n";
      if (random() % 2) {
        additions.push_back(
            {text.size(), "\"added\":7", random() % 2 ? "{\"extra\":1}," : ""});
      }
      text += "{\"i\":" + std::to_string(i);
      if (random() % 2)
        text += ", \"args\":{\"s\":\"}{\\\"\"" +
                std::string(random() % 2 ? "" : ",\"t\":{}") + "}";
      text += "}";
    }
    text += "]";
    auto json = nlohmann::json::parse(Copied(text, additions));
    size_t added = 0;
    size_t extra = 0;
    nlohmann::json rest = nlohmann::json::array();
    for (auto& item : json) {
      if (item.contains("extra")) {
        ++extra;
        continue;
      }
      if (item.contains("args") && item["args"].contains("added")) {
        ++added;
        item["args"].erase("added");
        if (item["args"].empty()) item.erase("args");
      }
      rest.push_back(item);
    }
    EXPECT_EQ(added, additions.size());
    EXPECT_EQ(rest, nlohmann::json::parse(text));
    size_t expected = 0;
    for (const Addition& a : additions) expected += !a.before.empty();
    EXPECT_EQ(extra, expected);
  }
}

TEST(Copy, WhatIsNoRecordIsAnError) {
  bool ok = true;
  Copied("[1, 2]", {{1, "\"a\":1", ""}}, &ok);
  EXPECT_FALSE(ok);
  Copied("[{\"a\":1}", {{100, "\"a\":1", ""}}, &ok);
  EXPECT_FALSE(ok);
  Copied("[{\"a\":1", {{1, "\"a\":1", ""}}, &ok);
  EXPECT_FALSE(ok);
}

TEST(Copy, NewEventsAreJson) {
  std::string out;
  AppendSpan(out, "a \"b\"\n", "lamina", 3, -1, -1500, 250, "\"x\":1");
  AppendName(out, "process_name", 3, 0, "</script>");
  const auto json = nlohmann::json::parse("[" + out + "0]");
  EXPECT_EQ(json[0]["name"], "a \"b\"\n");
  EXPECT_EQ(json[0]["ts"], -1.5);
  EXPECT_EQ(json[0]["dur"], 0.25);
  EXPECT_EQ(json[1]["args"]["name"], "</script>");
}

}  // namespace

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
