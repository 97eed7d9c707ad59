// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/database.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sqlite3.h>

#include "base/byte_source.h"
#include "base/text.h"

namespace lamina::ingest {
namespace {

// The longest value that is read; a longer one counts as damage.
constexpr int kMaxValueBytes = 16 << 20;
// The smallest row of a table takes this much of its page.
constexpr uint64_t kMinRowBytes = 4;
// How often a reader may go over all of a file.
constexpr uint64_t kPasses = 3;

std::string Quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
  return out;
}

// ASCII letters in lower case, as SQLite compares names.
std::string Lower(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return out;
}

// A path as the file part of a URI.
std::string UriPath(std::string_view path) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  static constexpr std::string_view kPlain = "/._-~";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
        (c >= 'a' && c <= 'z') || kPlain.find(c) != kPlain.npos) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

// Settings under which a hostile file is harmless.
void Restrain(sqlite3* connection) {
  const auto set = [&](int option, int value) {
    sqlite3_db_config(connection, option, value, nullptr);
  };
  set(SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0);
  set(SQLITE_DBCONFIG_ENABLE_TRIGGER, 0);
  set(SQLITE_DBCONFIG_ENABLE_VIEW, 0);
  set(SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0);
  // Lets a file whose end is missing be read up to there.
  set(SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1);
  sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(connection, SQLITE_LIMIT_WORKER_THREADS, 0);
  sqlite3_exec(connection, "PRAGMA cell_size_check = ON", nullptr, nullptr,
               nullptr);
}

uint64_t Big(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace

bool DatabaseTable::Has(std::string_view column) const {
  return std::any_of(columns.begin(), columns.end(), [&](const std::string& c) {
    return EqualsIgnoringCase(c, column);
  });
}

// --------------------------------------------------------------------------

Rows::Rows(sqlite3* connection, const DatabaseTable* table,
           std::initializer_list<std::string_view> columns, uint64_t* rows_left,
           std::string_view condition)
    : connection_(connection), rows_left_(rows_left) {
  if (table == nullptr) return;
  std::string sql = "SELECT ";
  for (const std::string_view column : columns) {
    if (sql.back() != ' ') sql += ',';
    sql += table->Has(column) ? Quoted(column) : "NULL";
  }
  sql += " FROM " + Quoted(table->name);
  // The order of the table, not that of an index.
  sql += condition.empty() ? " NOT INDEXED"
                           : " WHERE " + Quoted(condition) + " = ?1 LIMIT 1";
  if (sqlite3_prepare_v2(connection_, sql.c_str(), -1, &statement_, nullptr) !=
      SQLITE_OK)
    damage_ = sqlite3_errmsg(connection_);
}

Rows::~Rows() { sqlite3_finalize(statement_); }

bool Rows::Next() {
  if (statement_ == nullptr || !damage_.empty()) return false;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) {
    ++count_;
    // A page that is its own child would go on for ever, and tables that share
    // their pages would be read as often as there are names for them.
    if (*rows_left_ > 0) {
      --*rows_left_;
      return true;
    }
    damage_ = "the table has more rows than the file has room for";
  } else if (code != SQLITE_DONE) {
    damage_ = sqlite3_errmsg(connection_);
  }
  return false;
}

void Rows::Restart(int64_t value) {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_bind_int64(statement_, 1, value);
  count_ = 0;
  damage_.clear();
}

std::optional<int64_t> Rows::Int(int column) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_INTEGER:
      return sqlite3_column_int64(statement_, column);
    case SQLITE_FLOAT: {
      // Whole numbers only, as far as a double holds them exactly.
      const double value = sqlite3_column_double(statement_, column);
      if (value != std::floor(value) || std::fabs(value) > 9e15)
        return std::nullopt;
      return static_cast<int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> Rows::Real(int column) const {
  const int type = sqlite3_column_type(statement_, column);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return std::nullopt;
  return sqlite3_column_double(statement_, column);
}

std::optional<std::string_view> Rows::Text(int column) const {
  if (sqlite3_column_type(statement_, column) != SQLITE_TEXT)
    return std::nullopt;
  const unsigned char* text = sqlite3_column_text(statement_, column);
  if (text == nullptr) return std::nullopt;
  return std::string_view(
      reinterpret_cast<const char*>(text),
      static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}

// --------------------------------------------------------------------------

Result<std::unique_ptr<Database>> Database::Open(const std::string& path) {
  std::unique_ptr<Database> database(new Database);
  database->name_ = path;
  std::string head(100, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error) return Fail(InputError(path, "cannot open", "check the path"));
  const std::string uri = "file:" + UriPath(path) + "?mode=ro&immutable=1";
  if (sqlite3_open_v2(uri.c_str(), &database->connection_,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI,
                      nullptr) != SQLITE_OK) {
    return Fail(InputError(path, std::string("cannot open: ") +
                                     sqlite3_errmsg(database->connection_)));
  }
  LAMINA_TRY(database->Begin(head, size));
  return database;
}

Result<std::unique_ptr<Database>> Database::OpenBytes(std::string name,
                                                      std::string_view bytes) {
  std::unique_ptr<Database> database(new Database);
  database->name_ = std::move(name);
  if (sqlite3_open_v2(":memory:", &database->connection_, SQLITE_OPEN_READWRITE,
                      nullptr) != SQLITE_OK)
    return Fail(InputError(database->name_, "cannot open"));
  auto* copy = static_cast<unsigned char*>(
      sqlite3_malloc64(std::max<uint64_t>(bytes.size(), 1)));
  LAMINA_CHECK(copy != nullptr);
  std::memcpy(copy, bytes.data(), bytes.size());
  if (sqlite3_deserialize(database->connection_, "main", copy,
                          static_cast<sqlite3_int64>(bytes.size()),
                          static_cast<sqlite3_int64>(bytes.size()),
                          SQLITE_DESERIALIZE_FREEONCLOSE |
                              SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
    return Fail(InputError(database->name_, "cannot open"));
  LAMINA_TRY(database->Begin(bytes.substr(0, 100), bytes.size()));
  return database;
}

Database::~Database() { sqlite3_close_v2(connection_); }

Status Database::Begin(std::string_view head, uint64_t file_bytes) {
  file_bytes_ = file_bytes;
  rows_left_ = kPasses * file_bytes / kMinRowBytes;
  if (DetectPacking(head) != Packing::kPlain) {
    return Fail(InputErrorAt(name_, 0,
                             "is a packed database, which cannot be read",
                             "unpack it first"));
  }
  if (head.size() < 100 || !head.starts_with(kSqliteMagic)) {
    return Fail(InputErrorAt(name_, 0, "is no SQLite database",
                             "give the database that the profiler wrote"));
  }
  const uint64_t page = Big(head, 16, 2) == 1 ? 65536 : Big(head, 16, 2);
  const uint64_t promised = page * Big(head, 28, 4);
  if (promised > file_bytes) missing_bytes_ = promised - file_bytes;
  Restrain(connection_);

  sqlite3_stmt* list = nullptr;
  int code = sqlite3_prepare_v2(
      connection_,
      "SELECT name FROM sqlite_master WHERE type = 'table' AND "
      "sql LIKE 'CREATE TABLE%' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
      "ORDER BY name",
      -1, &list, nullptr);
  std::vector<std::string> names;
  while (code == SQLITE_OK) {
    const int step = sqlite3_step(list);
    if (step != SQLITE_ROW) {
      code = step;
      break;
    }
    const unsigned char* name = sqlite3_column_text(list, 0);
    if (name != nullptr)
      names.emplace_back(reinterpret_cast<const char*>(name));
    if (names.size() > file_bytes_ / kMinRowBytes) code = SQLITE_CORRUPT;
  }
  sqlite3_finalize(list);
  if (code != SQLITE_DONE && names.empty()) {
    return Fail(InputErrorAt(
        name_, 0,
        std::string("the list of tables cannot be read: ") +
            sqlite3_errmsg(connection_),
        missing_bytes_ > 0 ? "the file is cut off: copy or export it again"
                           : "the database is damaged: write it again"));
  }
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    DatabaseTable table;
    table.name = name;
    sqlite3_stmt* info = nullptr;
    // Generated columns are not in this list.
    const std::string sql = "PRAGMA table_info(" + Quoted(name) + ")";
    if (sqlite3_prepare_v2(connection_, sql.c_str(), -1, &info, nullptr) ==
        SQLITE_OK) {
      int keys = 0;
      while (sqlite3_step(info) == SQLITE_ROW) {
        const unsigned char* column = sqlite3_column_text(info, 1);
        if (column == nullptr) continue;
        table.columns.emplace_back(reinterpret_cast<const char*>(column));
        if (sqlite3_column_int(info, 5) > 0 && ++keys == 1)
          table.primary_key = table.columns.back();
      }
      if (keys != 1) table.primary_key.clear();
    }
    sqlite3_finalize(info);
    if (table.columns.empty()) continue;
    places_.try_emplace(Lower(name), tables_.size());
    tables_.push_back(std::move(table));
  }
  return {};
}

const DatabaseTable* Database::Find(std::string_view table) const {
  const auto it = places_.find(Lower(table));
  return it == places_.end() ? nullptr : &tables_[it->second];
}

Rows Database::Scan(const DatabaseTable* table,
                    std::initializer_list<std::string_view> columns) const {
  return {connection_, table, columns, &rows_left_};
}

std::unique_ptr<Rows> Database::Lookup(
    const DatabaseTable* table, std::initializer_list<std::string_view> columns,
    std::string_view key) const {
  return std::make_unique<Rows>(connection_, table, columns, &rows_left_, key);
}

}  // namespace lamina::ingest
