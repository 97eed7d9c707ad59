// SPDX-License-Identifier: Apache-2.0
//
// Databases for the readers of SQLite files.
//
// An input that begins like a database is one. Any other is SQL text: its
// statements make a database, those that SQLite refuses are left out, and the
// reader gets the result. Bytes of a database rarely survive a mutation; text
// does, so that tables, columns, types and values all change.
#pragma once

#include <cstdlib>
#include <memory>
#include <sqlite3.h>
#include <string>
#include <string_view>

#include "ingest/common/database.h"

namespace lamina::fuzz {

// Only what makes tables and fills them: no file, function of the outside or
// loop.
inline int AllowTables(void*, int action, const char*, const char*, const char*,
                       const char*) {
  switch (action) {
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_VIEW:
    case SQLITE_CREATE_INDEX:
    case SQLITE_REINDEX:
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_READ:
    case SQLITE_SELECT:
      return SQLITE_OK;
    default:
      return SQLITE_DENY;
  }
}

inline std::string DatabaseOf(std::string_view sql) {
  sqlite3* raw = nullptr;
  if (sqlite3_open(":memory:", &raw) != SQLITE_OK) std::abort();
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close_v2)> database(
      raw, &sqlite3_close_v2);
  sqlite3_set_authorizer(raw, AllowTables, nullptr);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, 1 << 20);
  sqlite3_limit(raw, SQLITE_LIMIT_COLUMN, 100);
  sqlite3_limit(raw, SQLITE_LIMIT_VDBE_OP, 25000);
  const auto stop = [](void*) { return 1; };
  sqlite3_progress_handler(raw, 100000, stop, nullptr);
  while (!sql.empty()) {
    sqlite3_stmt* statement = nullptr;
    const char* tail = nullptr;
    const int done = sqlite3_prepare_v2(
        raw, sql.data(), static_cast<int>(sql.size()), &statement, &tail);
    // A zero byte ends the text for SQLite: it would stay there.
    if (done == SQLITE_OK && tail != sql.data()) {
      while (statement != nullptr && sqlite3_step(statement) == SQLITE_ROW) {
      }
      sqlite3_finalize(statement);
      sql.remove_prefix(static_cast<size_t>(tail - sql.data()));
    } else {
      const size_t end = sql.find(";\n");
      sql.remove_prefix(end == std::string_view::npos ? sql.size() : end + 2);
    }
  }
  sqlite3_int64 size = 0;
  unsigned char* const bytes = sqlite3_serialize(raw, "main", &size, 0);
  std::string out(reinterpret_cast<const char*>(bytes),
                  bytes == nullptr ? 0 : static_cast<size_t>(size));
  sqlite3_free(bytes);
  return out;
}

// Null when SQLite refuses the bytes.
inline std::unique_ptr<ingest::Database> OpenInput(const uint8_t* data,
                                                   size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  auto database = input.starts_with(ingest::kSqliteMagic)
                      ? ingest::Database::OpenBytes("fuzz", input)
                      : ingest::Database::OpenBytes("fuzz", DatabaseOf(input));
  return database ? std::move(*database) : nullptr;
}

}  // namespace lamina::fuzz
