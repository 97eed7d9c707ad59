// SPDX-License-Identifier: Apache-2.0
//
// Tables in a file of SQLite, for any of its tools.
#include <algorithm>
#include <sqlite3.h>

#include "base/byte_sink.h"
#include "base/leftovers.h"
#include "sql/impl.h"

namespace lamina::sql {
namespace {

constexpr int kApplicationId = 0x4C414D4E;  // 'LAMN'

struct Closer {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
  void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};
using Connection = std::unique_ptr<sqlite3, Closer>;
using ExportStatement = std::unique_ptr<sqlite3_stmt, Closer>;

// Made in the folder for temporary files, then sent to its place as any output.
class TargetFile {
 public:
  explicit TargetFile(const std::string& path) : path_(path) {}

  Status Open() {
    // Asked first: whether it can be written at all.
    LAMINA_ASSIGN(sink_, CreateFileSink(path_));
    LAMINA_ASSIGN(folder_, MakeTemporaryFolder());
    sqlite3* db = nullptr;
    const int code =
        sqlite3_open_v2(made().c_str(), &db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    db_.reset(db);
    if (code != SQLITE_OK) return Failed();
    LAMINA_TRY(
        Execute("PRAGMA application_id = " + std::to_string(kApplicationId)));
    LAMINA_TRY(Execute("PRAGMA user_version = 1"));
    // The file is thrown away when anything fails.
    LAMINA_TRY(Execute("PRAGMA journal_mode = OFF"));
    return Execute("BEGIN");
  }
  Status Keep() {
    LAMINA_TRY(Execute("COMMIT"));
    db_.reset();
    LAMINA_TRY(SendFile(made(), *sink_));
    return sink_->Close();
  }
  Status Execute(const std::string& sql) {
    return sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) ==
                   SQLITE_OK
               ? Status()
               : Failed();
  }
  Status Failed() {
    return Fail(InputError(
        made(), sqlite3_errmsg(db_.get()),
        "check the folder for temporary files (TMPDIR) and its free space"));
  }
  sqlite3* db() { return db_.get(); }

 private:
  std::string made() const { return folder_.path() + "/out.sqlite"; }

  std::string path_;
  std::unique_ptr<ByteSink> sink_;
  Leftover folder_;
  Connection db_;
};

std::string Quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

// Copies a table; a name that stands twice gets a number.
Status Copy(TargetFile& file, const Table& table, const std::string& name) {
  std::string columns;
  std::string marks;
  std::vector<std::string> names;
  for (size_t c = 0; c < table.columns(); ++c) {
    const Column& column = table.schema().columns[c];
    std::string own = column.name;
    for (int n = 2; std::find(names.begin(), names.end(), own) != names.end();
         ++n)
      own = column.name + "_" + std::to_string(n);
    names.push_back(own);
    columns += (c ? ", " : "") + Quoted(own) +
               (column.type == ColumnType::kText   ? " TEXT"
                : column.type == ColumnType::kReal ? " REAL"
                                                   : " INTEGER");
    marks += c ? ",?" : "?";
  }
  if (table.columns() == 0) return {};
  LAMINA_TRY(
      file.Execute("CREATE TABLE " + Quoted(name) + "(" + columns + ")"));
  sqlite3_stmt* raw = nullptr;
  const std::string insert =
      "INSERT INTO " + Quoted(name) + " VALUES(" + marks + ")";
  if (sqlite3_prepare_v2(file.db(), insert.c_str(), -1, &raw, nullptr) !=
      SQLITE_OK)
    return file.Failed();
  const ExportStatement statement(raw);
  for (size_t r = 0; r < table.rows(); ++r) {
    for (size_t c = 0; c < table.columns(); ++c) {
      const int i = static_cast<int>(c) + 1;
      const Value value = table.At(r, c);
      switch (value.kind()) {
        case Value::Kind::kNull:
          sqlite3_bind_null(raw, i);
          break;
        case Value::Kind::kText:
          // A null pointer would be NULL, not an empty text.
          sqlite3_bind_text64(raw, i,
                              value.text().empty() ? "" : value.text().data(),
                              value.text().size(), SQLITE_STATIC, SQLITE_UTF8);
          break;
        case Value::Kind::kReal:
          sqlite3_bind_double(raw, i, value.real());
          break;
        default:
          sqlite3_bind_int64(raw, i, value.integer());
      }
    }
    if (sqlite3_step(raw) != SQLITE_DONE) return file.Failed();
    sqlite3_reset(raw);
  }
  for (const std::string& column : names) {
    if (column == "uid" || column == "start_ns") {
      LAMINA_TRY(file.Execute("CREATE INDEX " + Quoted(name + "_by_" + column) +
                              " ON " + Quoted(name) + "(" + Quoted(column) +
                              ")"));
    }
  }
  return {};
}

}  // namespace

Status Database::Export(const std::string& path, std::string_view sql,
                        bool model, const QueryOptions& options) {
  TargetFile file(path);
  LAMINA_TRY(file.Open());
  if (!sql.empty()) {
    LAMINA_ASSIGN(const auto tables, Run(sql, options));
    for (const Table& table : tables)
      LAMINA_TRY(Copy(file, table, table.name()));
  } else {
    for (const TableDef& table : Tables()) {
      const bool wanted = table.kind == TableKind::kResult ||
                          table.name == "note" ||
                          table.name == "note_evidence" ||
                          (model && table.kind == TableKind::kModel);
      if (!wanted) continue;
      LAMINA_ASSIGN(const auto rows,
                    Run("SELECT * FROM " + Quoted(table.name), options));
      LAMINA_TRY(Copy(file, rows.front(), table.name));
    }
    if (model) {
      for (const TableDef& table : Tables()) {
        if (table.kind == TableKind::kView)
          LAMINA_TRY(file.Execute("CREATE VIEW " + Quoted(table.name) + " AS " +
                                  table.select));
      }
    }
    LAMINA_TRY(Copy(file, ListTables(), "lamina_tables"));
    LAMINA_TRY(Copy(file, ListColumns(), "lamina_columns"));
  }
  return file.Keep();
}

}  // namespace lamina::sql
