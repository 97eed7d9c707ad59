// SPDX-License-Identifier: Apache-2.0
#include "emit/chrome/copy.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

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
}  // namespace lamina::emit
