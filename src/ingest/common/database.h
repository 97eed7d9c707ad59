// SPDX-License-Identifier: Apache-2.0
//
// SQLite files that profilers write, read as hostile input: nothing but plain
// columns of ordinary tables is ever evaluated (no view, trigger, virtual
// table or generated column), a table cannot have more rows than its file has
// room for, and a value of the wrong type reads as null. Damage ends a scan
// early and is remembered; it never ends the run.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

struct sqlite3;
struct sqlite3_context;
struct sqlite3_stmt;
struct sqlite3_value;

namespace lamina::ingest {

// The first bytes of every SQLite 3 file.
inline constexpr std::string_view kSqliteMagic{"SQLite format 3\0", 16};

struct DatabaseTable {
  std::string name;
  std::vector<std::string> columns;
  std::string primary_key;  // the column, when it is exactly one
  std::string row_id;       // what SQL calls the ids of its rows, if it can
  bool Has(std::string_view column) const;
};

using Columns = std::initializer_list<std::string_view>;

// Values of one row, by the columns asked for. A column that the table lacks
// reads as null.
class Row {
 public:
  std::optional<int64_t> Int(int column) const {
    int64_t value = 0;
    return ReadInt(column, value) ? std::optional(value) : std::nullopt;
  }
  int64_t IntOr(int column, int64_t fallback) const {
    int64_t value = 0;
    return ReadInt(column, value) ? value : fallback;
  }
  std::optional<double> Real(int column) const;
  // Nothing when the value is no text. Valid until the next row.
  std::optional<std::string_view> Text(int column) const;

 protected:
  friend class Database;
  std::vector<sqlite3_value*> values_;  // by column; null: not in the table

 private:
  // An optional as the result of a call was most of the time of reading one:
  // its parts are written to memory and loaded as one, which must wait.
  bool ReadInt(int column, int64_t& value) const;
};

// One pass over a table, in the order of the file, that may end at any row.
// Database::ForEach is the faster way to see all rows.
class Rows : public Row {
 public:
  Rows(sqlite3* connection, const DatabaseTable* table, Columns columns,
       uint64_t* rows_left, std::string_view condition = {});
  ~Rows();
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  // Moves to the next row; false at the end and where the file is damaged.
  bool Next();
  // For a pass with the condition "column = ?": begins again with this value.
  void Restart(int64_t value);

  // Rows so far.
  uint64_t count() const { return count_; }
  // Why the pass ended before the end of the table; empty when it did not.
  const std::string& damage() const { return damage_; }

 private:
  sqlite3* connection_;
  sqlite3_stmt* statement_ = nullptr;
  std::vector<int> places_;  // by column: in the statement; -1: in none
  uint64_t* rows_left_;      // of all passes over the file
  uint64_t count_ = 0;
  std::string damage_;
};

// Rows of a table between two row ids, in the order of the file.
struct RowRange {
  std::optional<int64_t> first;  // nothing: from the beginning
  // The pass ends before the row with this id. When no row has it, as in a
  // damaged table, to the end.
  std::optional<int64_t> stop;
};

// How a pass over a table ended.
struct PassEnd {
  uint64_t rows = 0;
  bool stopped = false;  // at RowRange::stop, not at the end of the table
  std::string damage;    // why it broke off; empty when it did not
};

class UnpackedCopy;

class Database {
 public:
  // Errors: no SQLite file, a file whose list of tables cannot be read.
  static Result<std::unique_ptr<Database>> Open(const std::string& path);
  // A copy of a database file in memory, for tests and fuzzers.
  static Result<std::unique_ptr<Database>> OpenBytes(std::string name,
                                                     std::string_view bytes);
  // Another connection to the same file, for another thread.
  Result<std::unique_ptr<Database>> Again() const;
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& name() const { return name_; }
  uint64_t file_bytes() const { return file_bytes_; }
  // The log beside the file that was applied to a copy of it; empty: none.
  const std::string& log() const { return log_; }
  // Bytes that the header promises and the file does not have.
  uint64_t missing_bytes() const { return missing_bytes_; }
  // Where another database follows in the file, which nothing reads; 0: none.
  uint64_t another_at() const { return another_at_; }

  // Ordinary tables, by name.
  const std::vector<DatabaseTable>& tables() const { return tables_; }
  // Those whose definition is damaged: no row of them can be read.
  const std::vector<std::string>& unreadable_tables() const {
    return unreadable_tables_;
  }
  // Null when there is none.
  const DatabaseTable* Find(std::string_view table) const;
  bool Has(std::string_view table) const { return Find(table) != nullptr; }
  // The table, or where it is missing its newest version: NAME_V3 before
  // NAME_V2.
  const DatabaseTable* FindVersion(std::string_view table) const;

  // Calls `read` for the rows of a table. SQLite runs the loop and hands the
  // values over without copies, which takes half of the time of Rows. A null
  // table has no rows.
  PassEnd ForEach(const DatabaseTable* table, Columns columns,
                  const std::function<void(const Row&)>& read,
                  const RowRange& range = {}) const;
  // Ids of rows that cut a table into ranges of about this many rows; none for
  // a table without row ids.
  std::vector<int64_t> Cuts(const DatabaseTable& table, uint64_t rows) const;

  // A pass over a table; over none at all when `table` is null.
  Rows Scan(const DatabaseTable* table, Columns columns) const;
  // Rows whose `key` equals a value; give it with Rows::Restart.
  std::unique_ptr<Rows> Lookup(const DatabaseTable* table, Columns columns,
                               std::string_view key) const;

  // Rows that passes may still see, so that damaged tables do not go on for
  // ever.
  uint64_t rows_left() const { return rows_left_; }
  void set_rows_left(uint64_t rows) const { rows_left_ = rows; }

 private:
  struct Pass;

  Database() = default;
  Status Connect();
  Status Begin(std::string_view head, uint64_t file_bytes);
  static void OnRow(sqlite3_context* context, int count,
                    sqlite3_value** values);

  std::string name_;
  // Of a database in memory; all connections to it share them.
  std::shared_ptr<const UnpackedCopy> unpacked_;  // of a packed file
  std::shared_ptr<const std::string> bytes_;
  uint64_t file_bytes_ = 0;
  std::string log_;
  uint64_t missing_bytes_ = 0;
  uint64_t another_at_ = 0;
  mutable uint64_t rows_left_ = 0;
  sqlite3* connection_ = nullptr;
  std::unique_ptr<Pass*> pass_;  // the one that runs
  std::vector<DatabaseTable> tables_;
  std::vector<std::string> unreadable_tables_;
  absl::flat_hash_map<std::string, size_t> places_;  // by name, lower case
};

}  // namespace lamina::ingest
