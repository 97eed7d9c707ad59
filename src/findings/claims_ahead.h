// SPDX-License-Identifier: Apache-2.0
//
// What rules claim, asked for by several threads before the rules' turn comes.
// The questions do not depend on each other; what becomes of the answers does.
#pragma once

#include <absl/functional/function_ref.h>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/status.h"
#include "findings/rule.h"
#include "sql/collected.h"
#include "sql/database.h"

namespace lamina::findings {

struct Claims {
  const Abstention* abstains = nullptr;  // then there are no rows
  std::shared_ptr<const sql::Collected> rows;
  double seconds = 0;  // that it took
};

// Errors: SQL of the rule that cannot be run.
Result<Claims> AskClaims(sql::Database& database, const Rule& rule,
                         const sql::QueryOptions& query);

class ClaimsAhead {
 public:
  using Ask =
      absl::FunctionRef<Result<Claims>(sql::Database& database, size_t item)>;
  using Open = absl::FunctionRef<Result<std::unique_ptr<sql::Database>>()>;

  // Of items 0 to `count` - 1.
  ClaimsAhead(size_t count, Ask ask) : ask_(ask), items_(count) {}

  // The answer of an item, each once and rising; made here where no other
  // thread has begun it.
  Result<Claims> Take(size_t item, sql::Database& own);
  // Makes answers that are not far ahead, with a connection of its own, until
  // End() is called. Without one: none, and Take() makes them.
  void Help(Open open);
  void End();

 private:
  struct Item {
    bool begun = false;
    std::optional<Result<Claims>> made;
  };
  // The first that is not begun and not far ahead; their number: none.
  size_t Next() const;

  Ask ask_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Item> items_;
  size_t taken_ = 0;  // items below it
  bool ended_ = false;
};

}  // namespace lamina::findings
