// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof/messages.h"

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace lamina::ingest::rocprof {
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
}  // namespace lamina::ingest::rocprof
