// SPDX-License-Identifier: Apache-2.0
//
// What a session keeps.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/made_once.h"
#include "base/opened.h"
#include "lamina/session.h"
#include "sql/database.h"
#include "sql/table_def.h"

namespace lamina {

namespace api {

inline const std::atomic<bool>* FlagOf(const std::optional<StopSource>& stop) {
  return stop ? stop->flag() : nullptr;
}

}  // namespace api

// The lock holds what this class keeps besides the session.
struct Session::Impl {
  static constexpr size_t kReports = 8;
  static constexpr size_t kAnswers = 8;

  std::shared_ptr<engine::Session> session;
  OpenOptions opened;  // what each report and question is told
  TraceInfo info;

  std::mutex mutex;
  // What is made is made by one of those who ask for it at a time.
  MadeOnce<std::string> tables_once;
  MadeOnce<ReportOptions> reports_once;
  // A question and what it is given.
  using Asked = std::pair<std::string, Params>;
  MadeOnce<Asked> answers_once;
  MadeOnce<int> answer_once;
  std::shared_ptr<const std::string> answer;
  std::map<std::string, std::shared_ptr<const Table>, std::less<>> kept;
  std::map<std::string, std::weak_ptr<const Table>, std::less<>> held;
  std::vector<std::pair<ReportOptions, std::shared_ptr<const Document>>>
      reports;  // the latest at the end
  std::vector<std::pair<Asked, std::shared_ptr<const Document>>>
      answers;  // the latest at the end
  // Connections that no query uses now.
  std::vector<std::unique_ptr<sql::Database>> idle;

  // Of the file when it was opened (base/opened.h); 0 where it is no file. What
  // copies records takes them from the file, at the places that it had.
  uint64_t state = 0;
  static uint64_t LookAt(const std::string& path) {
    return path == "-" ? 0 : StateOfInput(path);
  }
  Status Unchanged() const {
    if (state == 0 || LookAt(info.path) == state) return {};
    return Fail(InputError(info.path,
                           "is not the file that was opened any more",
                           "open it again"));
  }

  // Under the lock.
  std::shared_ptr<const Table> Known(std::string_view name) {
    if (const auto it = kept.find(name); it != kept.end()) return it->second;
    const auto it = held.find(name);
    return it == held.end() ? nullptr : it->second.lock();
  }

  std::shared_ptr<const Table> Keep(const sql::TableDef& def, Table table) {
    auto shared = std::make_shared<const Table>(std::move(table));
    const std::lock_guard lock(mutex);
    held[def.name] = shared;
    if (def.kind == sql::TableKind::kResult) kept.emplace(def.name, shared);
    return shared;
  }

  Result<std::unique_ptr<sql::Database>> Connect(bool allow_temp) {
    if (!allow_temp) {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto database = std::move(idle.back());
        idle.pop_back();
        return database;
      }
    }
    sql::DatabaseOptions options;
    options.allow_temp = allow_temp;
    return sql::Database::Open({{"main", {session}, {}}}, options);
  }
  void Return(std::unique_ptr<sql::Database> database) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(database));
  }
};

}  // namespace lamina
