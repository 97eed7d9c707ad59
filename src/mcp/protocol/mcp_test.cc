// SPDX-License-Identifier: Apache-2.0
//
// Messages, answers page by page, and calls side by side, over tools made here.
#include <gtest/gtest.h>
#include <random>
#include <thread>

#include "mcp/protocol/answer.h"
#include "mcp/protocol/message.h"
#include "mcp/protocol/server.h"

namespace lamina::mcp {
namespace {

// Notes, and tables of random width and length with texts of any bytes.
Made RandomMade(std::mt19937& random) {
  const auto below = [&](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  const auto text = [&](int most) {
    std::string out;
    for (int i = below(most); i > 0; --i)
      out += below(8) == 0 ? static_cast<char>(below(256))
                           : static_cast<char>('a' + below(26));
    return out;
  };
  Made made;
  made.document.command = "random";
  for (int i = below(5); i > 0; --i) {
    made.document.result.notes.push_back(
        MakeNote(Severity::kInfo, "note", text(900)));
  }
  for (int t = below(5); t > 0; --t) {
    Schema schema{"table_" + std::to_string(t), "", {}};
    const int columns = 1 + below(12);
    constexpr ColumnType kTypes[] = {ColumnType::kText, ColumnType::kInt,
                                     ColumnType::kReal, ColumnType::kBool,
                                     ColumnType::kTime};
    for (int c = 0; c < columns; ++c) {
      const ColumnType type = kTypes[below(5)];
      schema.columns.push_back(
          {"c" + std::to_string(c) + (type == ColumnType::kTime ? "_us" : ""),
           type, ""});
    }
    Table table(schema);
    for (int row = below(120); row > 0; --row) {
      std::vector<std::string> texts(static_cast<size_t>(columns));
      std::vector<Value> cells;
      for (int c = 0; c < columns; ++c) {
        texts[static_cast<size_t>(c)] = text(below(9) == 0 ? 400 : 12);
        const int64_t number =
            static_cast<int64_t>(random()) * (below(2) == 0 ? 1 : -1'000'003);
        switch (schema.columns[static_cast<size_t>(c)].type) {
          case ColumnType::kText:
            cells.emplace_back(texts[static_cast<size_t>(c)]);
            break;
          case ColumnType::kReal:
            cells.emplace_back(below(20) == 0 ? NAN : number / 7.0);
            break;
          case ColumnType::kBool:
            cells.emplace_back(number % 2 == 0);
            break;
          default:
            cells.emplace_back(number);
        }
        if (below(10) == 0) cells.back() = Value();
      }
      table.AddRow(cells);
    }
    made.document.result.tables.push_back(std::move(table));
  }
  return made;
}

// Bytes of an answer as a message has them.
size_t SizeOf(const Answer& answer) {
  Json result;
  result["content"] = Json::array({{{"type", "text"}, {"text", answer.text}}});
  result["structuredContent"] = answer.structured;
  result["isError"] = false;
  return ResultText(1, result).size();
}

TEST(Answer, PagesKeepToTheirSizeAndLoseNothing) {
  std::mt19937 random(1);
  int pages = 0, refused = 0;
  for (int round = 0; round < 150; ++round) {
    const Made made = RandomMade(random);
    AnswerOptions options;
    options.max_tokens = 500 + static_cast<int64_t>(random() % 4000);
    const auto& tables = made.document.result.tables;
    std::map<std::string, size_t> rows;
    size_t notes = 0;
    Position position;
    while (true) {
      const auto answer =
          MakeAnswer(made, "t_0123456789ab", {"a.json"}, position, 42, options);
      if (!answer) {  // a row that is wider than that
        EXPECT_NE(answer.error().error.what.find("too small"),
                  std::string::npos);
        ++refused;
        break;
      }
      ++pages;
      EXPECT_LE(static_cast<double>(SizeOf(*answer)),
                static_cast<double>(options.max_tokens) * 3.5 * 1.05);
      notes += answer->structured["notes"].size();
      for (const Json& table : answer->structured["tables"]) {
        EXPECT_EQ(table["first"], rows[table["name"]]);
        rows[table["name"]] += table["rows"].size();
      }
      // Text is clean whatever the cells hold.
      for (const char c : answer->text)
        EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 32);
      const Json& next = answer->structured["next_cursor"];
      EXPECT_EQ(next.is_null(), !answer->structured["truncated"]);
      if (next.is_null()) {
        EXPECT_EQ(notes, made.document.result.notes.size());
        for (const Table& table : tables)
          EXPECT_EQ(rows[table.name()], table.rows());
        break;
      }
      const auto read = ReadCursor(next.get<std::string>(), 42, made.document);
      ASSERT_TRUE(read);
      // Each page goes on.
      EXPECT_TRUE(read->notes > position.notes || read->rows != position.rows);
      position = *read;
      EXPECT_FALSE(ReadCursor(next.get<std::string>(), 43, made.document));
    }
  }
  EXPECT_GT(pages, 200);
  EXPECT_LT(refused, 60);
}

TEST(Message, LimitsHold) {
  EXPECT_TRUE(ParseMessage(R"({"a": [1, {"b": null}]})"));
  EXPECT_FALSE(ParseMessage(R"({"a": 1, "a": 2})"));
  EXPECT_TRUE(ParseMessage(R"([{"a": 1}, {"a": 2}])"));
  EXPECT_FALSE(ParseMessage("\"\xff\""));
  EXPECT_FALSE(ParseMessage("1e999"));
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(ParseMessage(nested(kMaxDepth)));
  EXPECT_FALSE(ParseMessage(nested(kMaxDepth + 1)));
  EXPECT_FALSE(ParseMessage(nested(1'000'000)));
}

// A server with tools that wait, count or fail.
class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    auto allowed = Inputs::Allow({"."}, "");
    EXPECT_TRUE(allowed);
    inputs_ = *std::move(allowed);
    ServerOptions options;
    options.version = "1";
    options.patience = std::chrono::milliseconds(50);
    Tool count;
    count.name = "count";
    count.params = {Param{.name = "n", .doc = "Number", .type = Type::kWhole}};
    count.run = [this](const Call& call) -> Outcome {
      ++runs_;
      while (held_ && !*call.stop)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (*call.stop) {
        ++stopped_;
        return tl::make_unexpected(Problem(CancelledError()));
      }
      if (call.arguments.value("n", 0) < 0)
        return tl::make_unexpected(Problem(UsageError("below 0")));
      if (call.arguments.value("n", 0) == 13) throw std::runtime_error("13");
      Made made;
      made.document.command = "count";
      Table table({"n", "", {{"n", ColumnType::kInt, ""}}});
      table.Add(call.arguments.value("n", 0));
      made.document.result.tables.push_back(std::move(table));
      return made;
    };
    options.tools.push_back(std::move(count));
    server_ = std::make_unique<Server>(std::move(options), *inputs_);
    connection_.Trust();
  }

  static std::string Line(int id, int n) {
    Json line;
    line["jsonrpc"] = "2.0";
    line["id"] = id;
    line["method"] = "tools/call";
    line["params"]["name"] = "count";
    line["params"]["arguments"]["n"] = n;
    return DumpText(line);
  }
  Json Ask(int id, int n) {
    const auto reply = server_->Handle(Line(id, n), connection_);
    return reply ? Json::parse(*reply) : Json();
  }

  std::atomic<bool> held_ = false;
  std::atomic<int> runs_ = 0, stopped_ = 0;
  std::unique_ptr<Inputs> inputs_;
  Connection connection_{{}};
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, AnswersAndErrors) {
  const Json right = Ask(1, 5);
  EXPECT_EQ(right["result"]["structuredContent"]["tables"][0]["rows"][0][0], 5);
  EXPECT_EQ(Ask(2, -1)["result"]["_meta"]["lamina/error"]["code"], "usage");
  EXPECT_EQ(Ask(3, 13)["result"]["_meta"]["lamina/error"]["code"], "internal");
  EXPECT_EQ(connection_.in_flight(), 0U);
}

TEST_F(ServerTest, TheSameQuestionIsComputedOnce) {
  Ask(1, 5);
  Ask(2, 5);
  EXPECT_EQ(runs_, 1);
  server_->Forget();
  Ask(3, 5);
  EXPECT_EQ(runs_, 2);
  // What failed is tried again.
  Ask(4, -1);
  Ask(5, -1);
  EXPECT_EQ(runs_, 4);
}

TEST_F(ServerTest, WhatTakesLongGoesOnAndIsJoined) {
  held_ = true;
  EXPECT_EQ(Ask(1, 7)["result"]["structuredContent"]["state"], "working");
  EXPECT_EQ(Ask(2, 7)["result"]["structuredContent"]["state"], "working");
  held_ = false;
  Json last;
  do {
    last = Ask(3, 7)["result"]["structuredContent"];
  } while (last["state"] == "working");
  EXPECT_EQ(last["tables"][0]["rows"][0][0], 7);
  EXPECT_EQ(runs_, 1);
}

TEST_F(ServerTest, ACancelStopsTheWorkUnlessAnotherWaits) {
  held_ = true;
  Reply one = server_->Accept(Line(1, 8), connection_);
  Reply two = server_->Accept(Line(2, 8), connection_);
  connection_.Cancel(1);
  connection_.Cancel(2);
  std::thread other([&] { EXPECT_FALSE(two.later()); });
  EXPECT_FALSE(one.later());
  other.join();
  while (stopped_ < runs_) std::this_thread::yield();
  held_ = false;
  EXPECT_EQ(connection_.in_flight(), 0U);
  EXPECT_EQ(Ask(1, 8)["result"]["structuredContent"]["state"], "complete");
}

TEST_F(ServerTest, ManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 60; ++i) {
        const int n = (t * 31 + i * 7) % 40 + 100;
        const int id = t * 1000 + i;
        if (i % 9 == 0) {
          Reply reply = server_->Accept(Line(id, n), connection_);
          connection_.Cancel(id);
          right += !reply.later();
          continue;
        }
        Json answer;
        do {
          answer = Ask(id, n)["result"]["structuredContent"];
        } while (answer["state"] == "working");
        right += answer["tables"][0]["rows"][0][0] == n;
        if (i % 20 == 0) server_->Forget();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 8 * 60);
  EXPECT_EQ(connection_.in_flight(), 0U);
}

}  // namespace
}  // namespace lamina::mcp
