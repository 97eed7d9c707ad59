// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ingest/rocprof/catalog.h"
#include "ingest/rocprof/shape.h"

namespace lamina::ingest::rocprof {

namespace {

RecordArray Markers(uint32_t process) {
  return {Domain::kMarkers, "marker_api", process, 1};
}

void AddMessage(Catalog& catalog, uint32_t process, int64_t id,
                std::string_view text, uint64_t offset) {
  Definitions definitions;
  definitions.AddMessage(id, text);
  catalog.Define(process, offset, std::move(definitions));
}

std::string Text(Catalog& catalog, uint32_t array, int64_t id) {
  Catalog::Messages messages(catalog, array);
  const Message* message = messages.Find(id);
  return message != nullptr
             ? PutNumbers(messages.Pattern(message->pattern), message->numbers)
             : "";
}

TEST(Catalog, AnArraySeesWhatStandsBeforeIt) {
  Catalog catalog;
  AddMessage(catalog, 0, 1, "before", 10);
  catalog.AddArray(Markers(0));
  AddMessage(catalog, 0, 2, "between", 20);
  catalog.AddArray(Markers(0));
  EXPECT_EQ(Text(catalog, 0, 1), "before");
  EXPECT_EQ(Text(catalog, 0, 2), "");
  EXPECT_EQ(Text(catalog, 1, 1), "before");
  EXPECT_EQ(Text(catalog, 1, 2), "between");
  EXPECT_EQ(Text(catalog, 2, 1), "");  // no such array
}

TEST(Catalog, OfEqualIdsTheFirstCounts) {
  Catalog catalog;
  AddMessage(catalog, 0, 1, "first", 10);
  AddMessage(catalog, 0, 1, "second", 20);
  catalog.AddArray(Markers(0));
  EXPECT_EQ(Text(catalog, 0, 1), "first");
}

// Threads finish the chunks of a list in any order: the place in the input
// counts.
TEST(Catalog, ChunksOfDefinitionsInAnyOrder) {
  for (const bool swapped : {false, true}) {
    Catalog catalog;
    catalog.AddArray({Domain::kSymbols, "kernel_symbols", 0, 1});
    catalog.AddArray({Domain::kKernels, "kernel_dispatch", 0, 1});
    Definitions first;
    first.AddSymbol(1, 100, {"first", 8});
    Definitions second;
    second.AddSymbol(1, 200, {"second", 16});
    second.AddSymbol(2, 210, {"other", 16});
    catalog.Claim();
    catalog.Claim();
    const auto finish = [&](uint64_t offset, Definitions& definitions) {
      catalog.Finish(0, offset, std::move(definitions));
    };
    if (swapped) finish(200, second);
    finish(100, first);
    if (!swapped) finish(200, second);
    catalog.AwaitDefinitions();
    ASSERT_TRUE(catalog.FindSymbol(1, 1).has_value());
    EXPECT_EQ(catalog.FindSymbol(1, 1)->name, "first");
    EXPECT_EQ(catalog.FindSymbol(1, 1)->registers, 8);
    EXPECT_EQ(catalog.FindSymbol(1, 2)->name, "other");
    // The list itself is no record that may ask.
    EXPECT_FALSE(catalog.FindSymbol(0, 1).has_value());
  }
}

// Records wait for the definitions that other threads still parse.
TEST(Catalog, RecordsWaitForDefinitions) {
  Catalog catalog;
  catalog.AddArray({Domain::kMessages, "marker_api", 0, 1});
  catalog.AddArray(Markers(0));
  catalog.Claim();
  std::string found;
  std::thread records([&] {
    catalog.AwaitDefinitions();
    found = Text(catalog, 1, 5);
  });
  Definitions definitions;
  definitions.AddMessage(5, "text");
  catalog.Finish(0, 10, std::move(definitions));
  records.join();
  EXPECT_EQ(found, "text");
}

TEST(Catalog, ProcessesAreApart) {
  Catalog catalog;
  catalog.AddAgent(0, 5, {true, 3});
  catalog.AddArray(Markers(0));
  catalog.AddArray(Markers(1));
  ASSERT_TRUE(catalog.FindAgent(0, 5).has_value());
  EXPECT_EQ(catalog.FindAgent(0, 5)->number, 3);
  EXPECT_FALSE(catalog.FindAgent(1, 5).has_value());
}

TEST(Catalog, OperationsByKindAndNumber) {
  Catalog catalog;
  catalog.AddOperations(0, 0, {});
  catalog.AddOperations(0, 1, {"NONE", "hipMalloc"});
  catalog.AddArray(Markers(0));
  EXPECT_EQ(catalog.Operation(0, 1, 1), "hipMalloc");
  for (const int64_t none : {int64_t{-1}, int64_t{2}, INT64_MIN, INT64_MAX})
    EXPECT_EQ(catalog.Operation(0, 1, none), "") << none;
  EXPECT_EQ(catalog.Operation(0, 0, 0), "");
  EXPECT_EQ(catalog.Operation(0, 2, 0), "");
}

// Every array between two messages, as a hostile file has them: no array may
// hold a copy of the messages before it, or sort them. With copies this is
// 20 GB.
TEST(Catalog, ManyArraysShareTheMessages) {
  for (const int step : {1, -1}) {
    Catalog catalog;
    constexpr int kArrays = 20000;
    for (int i = 0; i < kArrays; ++i) {
      AddMessage(catalog, 0, i * step, "message " + std::to_string(i),
                 static_cast<uint64_t>(i));
      catalog.AddArray(Markers(0));
    }
    for (int i = 0; i < kArrays; ++i) {
      const auto array = static_cast<uint32_t>(i);
      ASSERT_EQ(Text(catalog, array, i * step), "message " + std::to_string(i));
      ASSERT_EQ(Text(catalog, array, (i + 1) * step), "");
    }
  }
}

}  // namespace

namespace {

struct Part {
  uint64_t offset;
  uint32_t since;
  std::vector<std::pair<int64_t, std::string>> messages;
};

void Add(MessageTable& table, const Part& part, StringPool& patterns) {
  MessageRows rows;
  for (const auto& [id, text] : part.messages) rows.Add(id, text);
  table.Add(part.offset, part.since, std::move(rows), patterns);
}

std::string Find(const MessageTable& table, uint32_t array, int64_t id,
                 const StringPool& patterns, size_t& hint) {
  const Message* message = table.Find(array, id, hint);
  return message != nullptr
             ? PutNumbers(patterns[message->pattern], message->numbers)
             : "none";
}

// A list in input order, searched from its front.
std::string FindSlowly(const std::vector<Part>& parts, uint32_t array,
                       int64_t id) {
  for (const Part& part : parts) {
    for (const auto& [key, text] : part.messages) {
      if (key == id) return part.since <= array ? text : "none";
    }
  }
  return "none";
}

TEST(MessageTable, FindsWhatASearchFinds) {
  std::mt19937 random(7);
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  for (int round = 0; round < 300; ++round) {
    const int ids = 1 + below(60);
    const bool sorted = below(2) == 0;
    std::vector<Part> parts;
    int64_t next = 0;
    for (int i = below(6); i >= 0; --i) {
      const auto number = static_cast<uint32_t>(parts.size());
      Part part{number * 100, number / 2 + 1, {}};
      for (int n = below(20); n > 0; --n) {
        const int64_t id = sorted ? next += below(3) : below(ids);
        part.messages.emplace_back(
            id, below(2) == 0 ? "step" : "f, op_id = " + std::to_string(n));
      }
      parts.push_back(part);
    }
    MessageTable table;
    StringPool patterns;
    // What an array sees was added before it asks; the rest follows.
    const auto end = static_cast<uint32_t>(parts.size() / 2 + 2);
    size_t added = 0;
    size_t hint = 0;
    for (uint32_t array = 0; array < end; ++array) {
      size_t more = added;
      while (more < parts.size() && parts[more].since <= array) ++more;
      // Threads end in any order.
      for (size_t i = more; i > added; --i) Add(table, parts[i - 1], patterns);
      added = more;
      EXPECT_EQ(table.IsPending(array), [&] {
        for (const Part& part : parts) {
          if (part.since == array && !part.messages.empty()) return true;
        }
        return false;
      }());
      table.Settle(array);
      EXPECT_FALSE(table.IsPending(array));
      for (int i = 0; i < 40; ++i) {
        const int64_t id = below(ids + 2) - 1;
        for (uint32_t asks = 0; asks <= array; ++asks) {
          ASSERT_EQ(Find(table, asks, id, patterns, hint),
                    FindSlowly(parts, asks, id));
        }
      }
    }
  }
}

// A part that a later array sees may be there before an earlier array asks.
TEST(MessageTable, LaterPartsStayUnseen) {
  MessageTable table;
  StringPool patterns;
  Add(table, {200, 5, {{1, "late"}, {2, "two"}}}, patterns);
  Add(table, {100, 3, {{1, "early"}}}, patterns);
  size_t hint = 0;
  EXPECT_TRUE(table.IsPending(4));
  table.Settle(4);
  EXPECT_EQ(Find(table, 4, 1, patterns, hint), "early");
  EXPECT_EQ(Find(table, 4, 2, patterns, hint), "none");
  table.Settle(5);
  EXPECT_EQ(Find(table, 5, 1, patterns, hint), "early");
  EXPECT_EQ(Find(table, 5, 2, patterns, hint), "two");
  EXPECT_EQ(Find(table, 4, 2, patterns, hint), "none");
}

TEST(MessageTable, TheLargestIds) {
  MessageTable table;
  StringPool patterns;
  Add(table, {0, 0, {{INT64_MAX, "max"}, {INT64_MIN, "min"}, {0, "zero"}}},
      patterns);
  table.Settle(0);
  size_t hint = 0;
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(Find(table, 0, INT64_MIN, patterns, hint), "min");
    EXPECT_EQ(Find(table, 0, INT64_MAX, patterns, hint), "max");
    EXPECT_EQ(Find(table, 0, 0, patterns, hint), "zero");
    EXPECT_EQ(Find(table, 0, 7, patterns, hint), "none");
  }
}

}  // namespace

namespace {

// What the shape of the first record finds in the second: "1 2", start and end;
// "no" when the shape is another one. `start` and `end` are tokens of the
// first.
std::string Read(const std::string& first, const std::string& second,
                 size_t start, size_t end) {
  std::string text = first + "," + second;
  const size_t size = text.size();
  text.append(json::kPadding, '#');
  json::TokenIndex index;
  EXPECT_EQ(index.Build({text.data(), size}), json::TokenIndex::Outcome::kOk);
  const json::Tokens tokens({text.data(), size}, index);
  const size_t behind = tokens.Skip(0);
  FieldValues values{};
  Shape shape;
  size_t at = 0;
  EXPECT_FALSE(shape.Read(tokens, at, values));
  shape.Begin(0);
  shape.AddField(start, kStart);
  shape.AddField(end, kEnd);
  shape.Learn(tokens, behind);
  at = behind + 1;
  if (!shape.Read(tokens, at, values)) {
    EXPECT_EQ(at, behind + 1);
    return "no";
  }
  EXPECT_EQ(at, tokens.count());
  return std::to_string(values[kStart]) + " " + std::to_string(values[kEnd]);
}

TEST(Shape, ReadsTheNumbersOfRecordsLikeTheFirst) {
  // The numbers are the tokens 3 and 10.
  const std::string record = R"({"a": 1, "in": {"x": 22}, "text": "b1"})";
  const auto read = [&](const std::string& other) {
    return Read(record, other, 3, 10);
  };
  EXPECT_EQ(read(record), "1 22");
  EXPECT_EQ(read(R"({"a": 123456789012345678, "in": {"x": 0}, "text": "b1"})"),
            "123456789012345678 0");
  for (const char* other :
       {R"({"b": 1, "in": {"x": 22}, "text": "b1"})",    // a key
        R"({"aa": 1, "in": {"x": 22}, "text": "b1"})",   // a longer one
        R"({"in": {"x": 22}, "a": 1, "text": "b1"})",    // the order
        R"({"a":1, "in": {"x": 22}, "text": "b1"})",     // spaces
        R"({"a": "1", "in": {"x": 22}, "text": "b1"})",  // kinds of values
        R"({"a": 1, "in": {"x": null}, "text": "b1"})",
        R"({"a": 1, "in": {"x": 22.5}, "text": "b1"})",
        R"({"a": 1, "in": {"x": -22}, "text": "b1"})",
        R"({"a": 1, "in": {"x": 1234567890123456789}, "text": "b1"})",
        R"({"a": 1, "in": {"x": 22}, "text": "b2"})",  // other text
        R"({"a": 1, "in": {"x": 22}, "text": "b1 })"   // that does not end
        R"("})",                                       //
        R"({"a": 1, "in": {"x": 22}, "text": "b1", "c": 1})",  // more, less
        R"({"a": 1, "in": {"x": 22}})", R"({"a": 1})"})
    EXPECT_EQ(read(other), "no") << other;
}

// What has no plain numbers has no shape.
TEST(Shape, OtherNumbers) {
  for (const char* value :
       {"-1", "1.5", "1e3", "1234567890123456789", "\"1\"", "+1", "null"}) {
    const std::string record =
        R"({"a": )" + std::string(value) + R"(, "b": 2})";
    EXPECT_EQ(Read(record, record, 3, 7), "no") << value;
  }
}

// The text that is known may be longer than what is left of the input.
TEST(Shape, LongRecords) {
  for (const size_t size : {size_t{10}, size_t{4000}, size_t{1} << 20}) {
    const std::string key(size, 'k');
    const std::string record = R"({"b": 2, ")" + key + R"(": 3})";
    EXPECT_EQ(Read(record, record, 3, 7), size <= 4000 ? "2 3" : "no");
    EXPECT_EQ(Read(record, R"({"b": 2})", 3, 7), "no");
  }
}

}  // namespace

}  // namespace lamina::ingest::rocprof
