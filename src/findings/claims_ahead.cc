// SPDX-License-Identifier: Apache-2.0
#include "findings/claims_ahead.h"

#include <algorithm>
#include <chrono>

namespace lamina::findings {
namespace {

// Answers that wait for their turn, at most: some are large.
constexpr size_t kAhead = 6;

}  // namespace

Result<Claims> AskClaims(sql::Database& database, const Rule& rule,
                         const sql::QueryOptions& query) {
  const auto start = std::chrono::steady_clock::now();
  Claims claims;
  for (const Abstention& one : rule.abstains) {
    LAMINA_ASSIGN(const auto answer,
                  database.Run("SELECT (" + one.condition + ")", query));
    const Value value = answer[0].At(0, 0);
    if (value.null() || value.real() == 0) continue;
    claims.abstains = &one;
    break;
  }
  if (claims.abstains == nullptr) {
    LAMINA_ASSIGN(const auto results, database.Collect(rule.claims, query));
    if (results.size() != 1)
      return Fail(UsageError("claims are not one SELECT"));
    claims.rows = results[0];
  }
  claims.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return claims;
}

Result<Claims> ClaimsAhead::Take(size_t item, sql::Database& own) {
  std::unique_lock lock(mutex_);
  Item& wanted = items_[item];
  while (!wanted.made) {
    // While another thread is at it, what comes behind it.
    const size_t next = wanted.begun ? Next() : item;
    if (next == items_.size()) {
      changed_.wait(lock);
      continue;
    }
    items_[next].begun = true;
    lock.unlock();
    auto made = ask_(own, next);
    lock.lock();
    items_[next].made = std::move(made);
  }
  taken_ = item + 1;
  changed_.notify_all();
  auto out = *std::move(wanted.made);
  wanted.made.reset();
  return out;
}

size_t ClaimsAhead::Next() const {
  const size_t end = std::min(items_.size(), taken_ + kAhead);
  for (size_t i = taken_; i < end; ++i) {
    if (!items_[i].begun) return i;
  }
  return items_.size();
}

void ClaimsAhead::Help(Open open) {
  const auto database = open();
  if (!database) return;
  std::unique_lock lock(mutex_);
  while (!ended_) {
    const size_t next = Next();
    if (next == items_.size()) {
      changed_.wait(lock);
      continue;
    }
    items_[next].begun = true;
    lock.unlock();
    auto made = ask_(**database, next);
    lock.lock();
    items_[next].made = std::move(made);
    changed_.notify_all();
  }
}

void ClaimsAhead::End() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

}  // namespace lamina::findings
