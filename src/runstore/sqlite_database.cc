// SPDX-License-Identifier: Apache-2.0
//
// The rollback journal of SQLite, not its write-ahead log: a store is one file
// that can be copied, and works on file systems of a network as far as their
// locks do.
#include <sqlite3.h>

#include "runstore/database.h"

namespace lamina::runstore {
namespace {

Fault FaultOf(sqlite3* database) {
  using enum Fault::Kind;
  const char* const text = sqlite3_errmsg(database);
  switch (sqlite3_errcode(database) & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {kBusy, text};
    case SQLITE_NOTADB:
      return {kNoStore, text};
    case SQLITE_CORRUPT:
      return {kDamaged, text};
    case SQLITE_FULL:
      return {kFull, text};
    case SQLITE_IOERR:
      return {kIo, text};
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return {kReadOnly, text};
    case SQLITE_CANTOPEN:
      return {kCannotOpen, text};
    default:
      return {kOther, std::string("SQLite says: ") + text};
  }
}

class SqliteStatement : public Prepared {
 public:
  SqliteStatement(sqlite3* database, std::string_view sql)
      : database_(database) {
    if (sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()),
                           &statement_, nullptr) != SQLITE_OK)
      fault_ = FaultOf(database_);
  }
  ~SqliteStatement() override { sqlite3_finalize(statement_); }
  SqliteStatement(const SqliteStatement&) = delete;

  void Start(std::span<const Cell> values) override {
    if (statement_ == nullptr) return;
    sqlite3_reset(statement_);
    fault_.reset();
    for (size_t i = 0; i < values.size(); ++i)
      Bind(static_cast<int>(i) + 1, values[i]);
  }
  bool Next() override {
    if (fault_ || statement_ == nullptr) return false;
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) fault_ = FaultOf(database_);
    return false;
  }
  const std::optional<Fault>& fault() const override { return fault_; }

  bool IsNull(int column) const override {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
  }
  int64_t Int(int column) const override {
    return sqlite3_column_int64(statement_, column);
  }
  double Real(int column) const override {
    return sqlite3_column_double(statement_, column);
  }
  std::string Text(int column) const override {
    const void* const bytes = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return bytes == nullptr ? std::string()
                            : std::string(static_cast<const char*>(bytes),
                                          static_cast<size_t>(size));
  }

 private:
  void Bind(int column, const Cell& value) {
    if (const auto* whole = std::get_if<int64_t>(&value)) {
      sqlite3_bind_int64(statement_, column, *whole);
    } else if (const auto* real = std::get_if<double>(&value)) {
      sqlite3_bind_double(statement_, column, *real);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      sqlite3_bind_text64(statement_, column, text->data(), text->size(),
                          SQLITE_TRANSIENT, SQLITE_UTF8);
    } else if (const auto* bytes = std::get_if<Bytes>(&value)) {
      sqlite3_bind_blob64(statement_, column, bytes->value.data(),
                          bytes->value.size(), SQLITE_TRANSIENT);
    } else {
      sqlite3_bind_null(statement_, column);
    }
  }

  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
  std::optional<Fault> fault_;
};

class SqliteDatabase : public Database {
 public:
  SqliteDatabase(std::string path, sqlite3* database)
      : path_(std::move(path)), database_(database) {}
  ~SqliteDatabase() override { sqlite3_close_v2(database_); }
  SqliteDatabase(const SqliteDatabase&) = delete;

  std::unique_ptr<Prepared> Prepare(std::string_view sql) override {
    return std::make_unique<SqliteStatement>(database_, sql);
  }
  std::optional<Fault> Execute(const char* sql) override {
    if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK)
      return std::nullopt;
    return FaultOf(database_);
  }
  bool is_server() const override { return false; }
  const std::string& name() const override { return path_; }

 private:
  std::string path_;
  sqlite3* database_;
};

}  // namespace

std::unique_ptr<Database> OpenSqlite(const std::string& path, bool create,
                                     Fault& fault) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(
      path.c_str(), &opened,
      SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0), nullptr);
  auto database = std::make_unique<SqliteDatabase>(path, opened);
  if (code != SQLITE_OK) {
    fault = FaultOf(opened);
    return nullptr;
  }
  sqlite3_busy_timeout(opened, kBusySeconds * 1000);
  // A file that somebody gave away runs nothing of its own.
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  if (auto failed = database->Execute(
          "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL")) {
    fault = *failed;
    return nullptr;
  }
  return database;
}

}  // namespace lamina::runstore
