// SPDX-License-Identifier: Apache-2.0
//
// For tests.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <string>

namespace lamina::ingest {

// A database file in memory, made by statements.
inline std::string MakeDatabase(const std::string& statements) {
  sqlite3* connection = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &connection), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(
      sqlite3_exec(connection, statements.c_str(), nullptr, nullptr, &error),
      SQLITE_OK)
      << (error != nullptr ? error : "");
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(connection, "main", &size, 0);
  std::string out(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(connection);
  return out;
}

}  // namespace lamina::ingest
