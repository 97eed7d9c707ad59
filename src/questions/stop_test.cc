// SPDX-License-Identifier: Apache-2.0
//
// Questions that are stopped while they compute: at one of the looks of
// base/stop.h after another, on one trace that stays open.
#include "base/stop.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>

#include "engine/report.h"
#include "questions/questions.h"
#include "source_dir.h"
#include "sql/database.h"

namespace lamina::questions {
namespace {

const std::string kSamples = LAMINA_SOURCE_DIR "/samples/";

class StopTest : public testing::Test {
 protected:
  static Result<std::shared_ptr<engine::Session>> Open(
      const std::string& path) {
    engine::OpenOptions options;
    options.threads = 2;
    LAMINA_ASSIGN(std::shared_ptr<engine::Session> session,
                  engine::Session::Open(path, options));
    return session;
  }

  StopTest() {
    traces_.open = [this](const std::string& path)
        -> Result<std::shared_ptr<engine::Session>> {
      auto& known = open_[path];
      if (known == nullptr) {
        LAMINA_ASSIGN(known, Open(path));
      }
      return known;
    };
  }
  ~StopTest() override { SetAtLook(nullptr, 0); }

  static std::string Text(const Document& document) {
    std::string out;
    for (const Table& table : document.result.tables) {
      out += table.name() + "\n";
      for (size_t row = 0; row < table.rows(); ++row) {
        for (size_t c = 0; c < table.columns(); ++c)
          out += CellText(table, row, c) + ",";
        out += "\n";
      }
    }
    for (const Note& note : document.result.notes) out += note.text + "\n";
    return out;
  }

  Result<Document> AskOf(const std::string& name, const Params& params,
                         const StopFlag* stop) {
    Asker asker;
    asker.threads = 2;
    asker.cache = false;
    asker.traces = &traces_;
    asker.stop = stop;
    LAMINA_ASSIGN(const Question* const question, FindQuestion(name));
    LAMINA_ASSIGN(Answer answer, Ask(*question, params, asker));
    return std::move(answer.document);
  }

  // Stops it at the first look, a later one, and so on until it is answered:
  // with what is said where nobody stops. Returns how often it was stopped.
  int StopAtEachLook(const std::string& name, const Params& params,
                     double factor) {
    const auto expected = AskOf(name, params, nullptr);
    EXPECT_TRUE(expected) << name << expected.error().ToString();
    if (!expected) return 0;
    open_.clear();
    StopFlag flag = false;
    int stopped = 0;
    for (double look = 1;; look = std::max(look + 1, look * factor)) {
      flag = false;
      SetAtLook(&flag, static_cast<int64_t>(look));
      const auto answer = AskOf(name, params, &flag);
      SetAtLook(nullptr, 0);
      if (answer) {
        EXPECT_EQ(Text(*answer), Text(*expected)) << name;
        break;
      }
      EXPECT_EQ(answer.error().kind, ErrorKind::kCancelled)
          << answer.error().ToString();
      ++stopped;
    }
    return stopped;
  }

  std::map<std::string, std::shared_ptr<engine::Session>> open_;
  OpenedTraces traces_;
};

TEST_F(StopTest, QuestionsToATrace) {
  const std::string trace = kSamples + "train_step.json.gz";
  EXPECT_GT(StopAtEachLook("host", {{"trace", trace}}, 1), 5);
  EXPECT_GT(StopAtEachLook("path", {{"trace", trace}}, 1), 5);
  EXPECT_GT(StopAtEachLook(
                "path",
                {{"trace", trace}, {"what_if", "scale:class=compute:0.5"}}, 1),
            5);
  EXPECT_GT(StopAtEachLook("layers", {{"trace", trace}}, 1), 2);
  EXPECT_GT(StopAtEachLook("diagnose", {{"trace", trace}}, 1.2), 5);
  EXPECT_GT(StopAtEachLook("report", {{"trace", trace}}, 1.2), 5);
  EXPECT_GT(StopAtEachLook(
                "diff", {{"a", trace}, {"b", kSamples + "serve.json.gz"}}, 1.2),
            5);
}

TEST_F(StopTest, QuestionsToDumps) {
  const Params dumps = {{"dump", kSamples + "dumps"}};
  EXPECT_GT(StopAtEachLook("graph_candidates", dumps, 1.2), 2);
  EXPECT_GT(StopAtEachLook("graph_census", dumps, 1.2), 2);
}

TEST_F(StopTest, RowsOfSql) {
  StopFlag flag = false;
  int stopped = 0;
  const auto session = *Open(kSamples + "train_step.json.gz");
  sql::QueryOptions query;
  query.stop = &flag;
  const std::string sql =
      "SELECT count(*) FROM device_events e JOIN kernel k ON e.uid = k.uid "
      "WHERE k.layer IS NOT NULL";
  for (int64_t look = 1;; ++look) {
    auto database = *sql::Database::Open({{"main", {session}, {}}});
    flag = false;
    SetAtLook(&flag, look);
    const auto rows = database->Run(sql, query);
    SetAtLook(nullptr, 0);
    if (rows) break;
    EXPECT_EQ(rows.error().kind, ErrorKind::kCancelled);
    ++stopped;
  }
  EXPECT_GT(stopped, 2);
}

// Who waits for what another thread makes of a trace hears a stop; the other
// one goes on.
TEST_F(StopTest, WhoWaits) {
  const auto session = *traces_.open(kSamples + "train_step.json.gz");
  std::atomic<bool> made = false;
  std::vector<std::thread> making;
  for (const char* key : {"rows of kernels", "rows of slice", "report"}) {
    std::atomic<bool> begun = false;
    making.emplace_back([&, key] {
      const auto kept = session->kept().Get<ResultSet>(
          key, [&]() -> Result<std::shared_ptr<const ResultSet>> {
            begun = true;
            begun.notify_one();
            made.wait(false);
            return std::make_shared<const ResultSet>();
          });
      EXPECT_TRUE(kept);
    });
    begun.wait(false);
  }
  std::atomic<int> cancelled = 0;
  std::vector<std::thread> waiting;
  StopFlag flag = false;
  const auto expect_cancelled = [&](const auto& answer) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, ErrorKind::kCancelled);
    ++cancelled;
  };
  waiting.emplace_back([&] {
    auto database = *sql::Database::Open({{"main", {session}, {}}});
    sql::QueryOptions query;
    query.stop = &flag;
    expect_cancelled(database->Run("SELECT count(*) FROM kernels", query));
    expect_cancelled(database->Run("SELECT * FROM ancestors(1)", query));
  });
  waiting.emplace_back([&] {
    expect_cancelled(
        EndedByStop(&flag, [&] { return engine::KeptReport(*session); }));
  });
  flag = true;
  for (std::thread& thread : waiting) thread.join();
  made = true;
  made.notify_all();
  for (std::thread& thread : making) thread.join();
  EXPECT_EQ(cancelled, 3);
}

}  // namespace
}  // namespace lamina::questions
