// SPDX-License-Identifier: Apache-2.0
#include "sql/database.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/stop.h"
#include "lamina/version.h"
#include "rules/document.h"
#include "sql/impl.h"
#include "table/row_columns.h"

namespace lamina::sql {
namespace {

constexpr std::string_view kSchemaVersion = "1";

// Functions of SQLite that reach outside the connection.
constexpr std::string_view kForbidden[] = {
    "load_extension", "fts3_tokenizer", "writefile", "readfile",
    "edit",           "lsmode",         "sqlite_log"};
constexpr std::string_view kHiddenTables[] = {"dbstat", "sqlite_dbpage",
                                              "sqlite_stmt"};
constexpr std::string_view kPragmas[] = {"table_info", "table_xinfo",
                                         "function_list", "table_list"};

bool Among(std::span<const std::string_view> names, const char* name) {
  if (name == nullptr) return false;
  return std::any_of(names.begin(), names.end(), [&](std::string_view known) {
    return sqlite3_stricmp(std::string(known).c_str(), name) == 0;
  });
}

int Authorize(void* pointer, int action, const char* a, const char* b,
              const char* schema, const char*) {
  const auto& impl = *static_cast<const Database::Impl*>(pointer);
  if (!impl.locked || impl.declaring) return SQLITE_OK;
  const bool temp = impl.options.allow_temp && schema != nullptr &&
                    std::strcmp(schema, "temp") == 0;
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_READ:
      return Among(kHiddenTables, a) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_FUNCTION:
      return Among(kForbidden, b) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
      return Among(kPragmas, a) ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_CREATE_TEMP_TABLE:
    case SQLITE_CREATE_TEMP_VIEW:
    case SQLITE_CREATE_TEMP_INDEX:
    case SQLITE_DROP_TEMP_TABLE:
    case SQLITE_DROP_TEMP_VIEW:
    case SQLITE_DROP_TEMP_INDEX:
      return impl.options.allow_temp ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
    case SQLITE_REINDEX:
      return temp ? SQLITE_OK : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

int Progress(void* pointer) {
  return static_cast<Database::Impl*>(pointer)->MustStop() ? 1 : 0;
}

// Of names that begin as a word does the one that does so longest, at least
// with three letters and half of the word; the shortest of those. Empty: none.
std::string_view BeginsAlike(std::string_view word,
                             const std::vector<std::string_view>& names) {
  std::string_view best;
  size_t most = std::max<size_t>(3, (word.size() + 1) / 2) - 1;
  for (const std::string_view name : names) {
    const auto same = static_cast<size_t>(
        std::mismatch(word.begin(), word.end(), name.begin(), name.end())
            .first -
        word.begin());
    if (same < most || (same == most && name.size() >= best.size())) continue;
    if (same == most && best.empty()) continue;
    most = same;
    best = name;
  }
  return best;
}

// The nearest of what there is to a name that there is not. Columns are those
// of the tables that the query names; where none of them is near, all of one.
std::string DidYouMean(const std::string& message, std::string_view sql) {
  const auto behind = [&](std::string_view prefix) -> std::string {
    const size_t at = message.find(prefix);
    if (at == std::string::npos) return "";
    std::string name = message.substr(at + prefix.size());
    if (const size_t dot = name.rfind('.'); dot != std::string::npos)
      name = name.substr(dot + 1);
    return name;
  };
  std::set<std::string> names;
  std::vector<const TableDef*> named;
  std::string word = behind("no such column: ");
  if (!word.empty()) {
    named = TablesIn(sql);
    for (const TableDef* table : named) {
      for (const ColumnDef& column : table->columns) names.insert(column.name);
    }
  } else if (word = behind("no such table: "); !word.empty()) {
    for (const TableDef& table : Tables()) names.insert(table.name);
    for (const auto* list :
         {"lamina_tables", "lamina_columns", "lamina_functions", "lamina_meta"})
      names.insert(list);
    for (const FunctionInfo& f : Functions()) {
      if (f.kind == "table") names.insert(f.name);
    }
  } else if (word = behind("no such function: "); !word.empty()) {
    for (const FunctionInfo& f : Functions()) names.insert(f.name);
  } else {
    return "";
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::string_view near = rules::Nearest(word, views);
  if (near.empty()) near = BeginsAlike(word, views);
  if (!near.empty() && near != word)
    return "did you mean " + std::string(near) + "?";
  if (constexpr size_t kMostListed = 20;
      named.size() == 1 && names.size() <= kMostListed) {
    return ColumnsText(*named[0]);
  }
  return "⟨lamina⟩ list tables ⟨columns⟩ shows what there is";
}

// The place of an error in the text: line, column and the line with a caret.
void SetPlace(Error& error, std::string_view sql, size_t offset) {
  offset = std::min(offset, sql.size());
  const size_t begin = offset == 0 ? 0 : sql.rfind('\n', offset - 1) + 1;
  const size_t end = std::min(sql.find('\n', offset), sql.size());
  error.line = static_cast<uint32_t>(
      1 + std::count(sql.begin(), sql.begin() + static_cast<ptrdiff_t>(offset),
                     '\n'));
  error.column = static_cast<uint32_t>(offset - begin + 1);
  if (end - begin > 200) return;
  const std::string before = EscapeTerminal(sql.substr(begin, offset - begin));
  error.excerpt = before + EscapeTerminal(sql.substr(offset, end - offset)) +
                  "\n" + std::string(DisplayWidth(before), ' ') + "^";
}

Error SqlError(Database::Impl& impl, std::string_view sql, size_t base,
               int code) {
  if (impl.failed) return *std::exchange(impl.failed, std::nullopt);
  Error error;
  error.kind = ErrorKind::kUsage;
  error.file = "SQL";
  error.what = sqlite3_errmsg(impl.db);
  if (code == SQLITE_AUTH) {
    error.what = "not allowed: " + error.what;
    error.hint =
        "queries only read: SELECT, WITH, VALUES and EXPLAIN; ⟨allow_temp⟩ "
        "adds TEMP tables and views";
  } else if (code == SQLITE_TOOBIG || code == SQLITE_NOMEM ||
             code == SQLITE_FULL) {
    error.kind = ErrorKind::kLimit;
  } else {
    error.hint = DidYouMean(error.what, sql);
  }
  const int offset = sqlite3_error_offset(impl.db);
  SetPlace(error, sql, base + static_cast<size_t>(std::max(0, offset)));
  return error;
}

Error LimitError(std::string what, std::string hint) {
  Error error;
  error.kind = ErrorKind::kLimit;
  error.what = std::move(what);
  error.hint = std::move(hint);
  return error;
}

// Fills a result from the rows of a statement.
class Collector {
 public:
  explicit Collector(sqlite3_stmt* statement)
      : statement_(statement), out_(std::make_shared<Collected>(Names())) {}
  uint64_t bytes() const { return bytes_; }

  void Add() {
    for (size_t c = 0; c < out_->names().size(); ++c) {
      sqlite3_value* const value =
          sqlite3_column_value(statement_, static_cast<int>(c));
      switch (sqlite3_value_type(value)) {
        case SQLITE_INTEGER:
          out_->AddInt(c, sqlite3_value_int64(value));
          break;
        case SQLITE_FLOAT:
          out_->AddReal(c, sqlite3_value_double(value));
          break;
        case SQLITE_TEXT: {
          const std::string_view text = ValueOf(value).text();
          out_->AddText(c, text);
          bytes_ += text.size();
          break;
        }
        case SQLITE_BLOB: {
          // As SQL writes it: X'00ff'.
          const auto* data =
              static_cast<const unsigned char*>(sqlite3_value_blob(value));
          const int size = sqlite3_value_bytes(value);
          constexpr char kDigits[] = "0123456789ABCDEF";
          std::string text = "X'";
          for (int k = 0; k < size; ++k) {
            text += kDigits[data[k] >> 4];
            text += kDigits[data[k] & 15];
          }
          text += "'";
          out_->AddText(c, text);
          bytes_ += text.size();
          break;
        }
        default:
          out_->AddNull(c);
      }
      bytes_ += 8;
    }
  }

  std::shared_ptr<const Collected> Finish() {
    out_->Settle();
    return std::move(out_);
  }

 private:
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (int c = 0; c < sqlite3_column_count(statement_); ++c)
      names.emplace_back(sqlite3_column_name(statement_, c));
    return names;
  }

  sqlite3_stmt* statement_;
  std::shared_ptr<Collected> out_;
  uint64_t bytes_ = 0;
};

// Binds what has the name of a parameter. Errors: kUsage for one without a
// value.
Status Bind(sqlite3_stmt* statement,
            const std::map<std::string, Parameter>& params) {
  for (int i = 1; i <= sqlite3_bind_parameter_count(statement); ++i) {
    const char* name = sqlite3_bind_parameter_name(statement, i);
    const auto it = name == nullptr ? params.end() : params.find(name + 1);
    if (it == params.end()) {
      return Fail(
          UsageError("the query has a parameter " +
                         std::string(name ? name : "?") + " without a value",
                     name ? "give ⟨param⟩ " + std::string(name + 1) + "=VALUE"
                          : "name it (:x) and give ⟨param⟩ x=VALUE"));
    }
    if (const auto* whole = std::get_if<int64_t>(&it->second)) {
      sqlite3_bind_int64(statement, i, *whole);
    } else if (const auto* real = std::get_if<double>(&it->second)) {
      sqlite3_bind_double(statement, i, *real);
    } else if (const auto* text = std::get_if<std::string>(&it->second)) {
      sqlite3_bind_text64(statement, i, text->data(), text->size(),
                          SQLITE_TRANSIENT, SQLITE_UTF8);
    } else {
      sqlite3_bind_null(statement, i);
    }
  }
  return {};
}

bool IsSchemaName(std::string_view name) {
  if (name.empty() || name.size() > 40) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(i > 0 && c >= '0' && c <= '9')) return false;
  }
  return name != "temp" && name != "TEMP";
}

struct StatementCloser {
  void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};
using Statement = std::unique_ptr<sqlite3_stmt, StatementCloser>;

// Makes a plain table of a schema and fills it.
Status FillPlain(Database::Impl& impl, const std::string& schema,
                 const Table& table) {
  const std::string name = schema + ".\"" + table.name() + "\"";
  LAMINA_TRY(impl.Execute(("DROP TABLE IF EXISTS " + name).c_str()));
  std::string create = "CREATE TABLE " + name + "(";
  std::string insert = "INSERT INTO " + name + " VALUES(";
  for (size_t c = 0; c < table.columns(); ++c) {
    // Times are whole nanoseconds here.
    create += (c ? ", \"" : "\"") + NameInNs(table.schema().columns[c]) + "\"";
    insert += c ? ",?" : "?";
  }
  LAMINA_TRY(impl.Execute((create + ")").c_str()));
  sqlite3_stmt* raw = nullptr;
  sqlite3_prepare_v2(impl.db, (insert + ")").c_str(), -1, &raw, nullptr);
  const Statement statement(raw);
  LAMINA_TRY(impl.Execute("BEGIN"));
  for (size_t r = 0; r < table.rows(); ++r) {
    for (size_t c = 0; c < table.columns(); ++c) {
      const Value value = table.At(r, c);
      const int i = static_cast<int>(c) + 1;
      switch (value.kind()) {
        case Value::Kind::kNull:
          sqlite3_bind_null(raw, i);
          break;
        case Value::Kind::kText:
          // It lives until the step.
          sqlite3_bind_text64(raw, i, value.text().data(), value.text().size(),
                              SQLITE_STATIC, SQLITE_UTF8);
          break;
        case Value::Kind::kReal:
          sqlite3_bind_double(raw, i, value.real());
          break;
        default:
          sqlite3_bind_int64(raw, i, value.integer());
      }
    }
    sqlite3_step(raw);
    sqlite3_reset(raw);
  }
  return impl.Execute("COMMIT");
}

// The tables that describe the others are plain ones, filled once.
Status AddLists(Database::Impl& impl) {
  const auto fill = [&](const Table& table) {
    return FillPlain(impl, "main", table);
  };
  LAMINA_TRY(fill(ListTables()));
  LAMINA_TRY(fill(ListColumns()));
  LAMINA_TRY(fill(ListFunctions()));
  Table meta(
      {"lamina_meta",
       "",
       {{"key", ColumnType::kText, ""}, {"value", ColumnType::kText, ""}}});
  meta.Add("schema_version", kSchemaVersion);
  meta.Add("lamina_version", Version());
  return fill(meta);
}

struct TableRow {
  std::string_view name, kind, cost, doc;
};

struct ColumnRow {
  std::string_view table_name, column_name, type, unit;
  int64_t hidden;
  std::string_view doc;
};

struct FunctionRow {
  std::string_view name, kind, signature, doc, example;
};

}  // namespace

Database::Impl::~Impl() { sqlite3_close(db); }

bool Database::Impl::MustStop() {
  if (stop != nullptr && stop->load(std::memory_order_relaxed)) {
    if (!failed) failed = CancelledError();
    return true;
  }
  if (deadline != std::chrono::steady_clock::time_point::max() &&
      std::chrono::steady_clock::now() > deadline) {
    if (!failed) {
      failed = LimitError("the query ran longer than its limit of " +
                              std::to_string(time_limit.count()) + " ms",
                          "raise ⟨time_limit⟩, or ask for less");
    }
    return true;
  }
  return false;
}

Status Database::Impl::Execute(const char* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return Fail(InputError("SQL", sqlite3_errmsg(db)));
  }
  return {};
}

Result<engine::Session*> Database::Impl::SessionOf(std::string_view schema) {
  for (const SchemaInput& input : schemas) {
    if (schema.empty() || input.name == schema) {
      if (!input.ranks.empty() && schema.empty() && schemas.size() == 1 &&
          input.sources.size() > 1) {
        return Fail(UsageError("a function over event numbers needs one trace",
                               "open one rank alone"));
      }
      return input.sources.front().get();
    }
  }
  return Fail(UsageError("there is no trace named " + std::string(schema),
                         "name it as NAME=PATH"));
}

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::~Database() = default;

const std::vector<uint64_t>& Database::row_counts() const {
  return impl_->row_counts;
}

Result<std::unique_ptr<Database>> Database::Open(
    std::vector<SchemaInput> schemas, const DatabaseOptions& options) {
  const StopScope none(nullptr);  // nothing may throw through SQLite
  std::set<std::string> names;
  for (const SchemaInput& schema : schemas) {
    if (!IsSchemaName(schema.name) || !names.insert(schema.name).second) {
      return Fail(UsageError(
          "'" + schema.name + "' cannot name a trace, or stands twice",
          "letters, digits and _, as in a=one.json b=two.json"));
    }
  }
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->schemas = std::move(schemas);
  if (sqlite3_open_v2(":memory:", &impl->db,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                          SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_MEMORY,
                      nullptr) != SQLITE_OK)
    return Fail(InputError("SQL", "SQLite does not open"));
  sqlite3* const db = impl->db;
  RegisterTables(*impl);
  RegisterScalars(*impl);
  RegisterAggregates(*impl);
  RegisterBounded(*impl);
  // Temporary tables never reach a disk.
  if (options.allow_temp)
    LAMINA_TRY(impl->Execute("PRAGMA temp_store = MEMORY"));
  if (options.listed) LAMINA_TRY(AddLists(*impl));
  for (const SchemaInput& schema : impl->schemas) {
    if (schema.name != "main") {
      if (!impl->Execute(
              ("ATTACH ':memory:' AS \"" + schema.name + "\"").c_str())) {
        return Fail(UsageError(
            "too many traces for one query",
            "at most " +
                std::to_string(sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, -1)) +
                "; a folder of ranks is one"));
      }
    }
    const std::string prefix = "\"" + schema.name + "\".";
    for (const TableDef& table : Tables()) {
      std::string create;
      if (table.kind != TableKind::kView && !options.listed) continue;
      if (table.kind != TableKind::kView) {
        create = "CREATE VIRTUAL TABLE " + prefix + "\"" + table.name +
                 "\" USING lamina(" + table.name + ")";
      } else if (schema.ranks.empty()) {
        create = "CREATE VIEW " + prefix + "\"" + table.name + "\" AS " +
                 table.select;
      } else {
        continue;
      }
      LAMINA_TRY(impl->Execute(create.c_str()));
    }
  }
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 64 << 20);
  sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
  sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 200);
  sqlite3_limit(db, SQLITE_LIMIT_COMPOUND_SELECT, 100);
  sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, 1000000);
  sqlite3_limit(db, SQLITE_LIMIT_FUNCTION_ARG, 32);
  sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000);
  sqlite3_limit(db, SQLITE_LIMIT_VARIABLE_NUMBER, 999);
  sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, 0);
  sqlite3_set_authorizer(db, &Authorize, impl.get());
  sqlite3_progress_handler(db, 1000, &Progress, impl.get());
  impl->locked = true;
  return std::unique_ptr<Database>(new Database(std::move(impl)));
}

Result<std::vector<Table>> Database::Run(std::string_view sql,
                                         const QueryOptions& options) {
  LAMINA_ASSIGN(const auto collected, Collect(sql, options));
  std::vector<Table> results;
  for (const auto& result : collected) {
    results.push_back(result->ToTable(
        results.empty() ? "result"
                        : "result_" + std::to_string(results.size() + 1)));
  }
  return results;
}

Result<std::vector<std::shared_ptr<const Collected>>> Database::Collect(
    std::string_view sql, const QueryOptions& options) {
  Impl& impl = *impl_;
  impl.failed.reset();
  impl.stop = options.stop != nullptr ? options.stop : StopOfThread();
  // Nothing may throw through SQLite: its callbacks look at `impl.stop`.
  const StopScope none(nullptr);
  impl.time_limit = options.time_limit;
  impl.deadline = options.time_limit.count() > 0
                      ? std::chrono::steady_clock::now() + options.time_limit
                      : std::chrono::steady_clock::time_point::max();
  impl.row_counts.clear();
  const std::string text(sql);  // ends in a zero
  if (text.size() > (1U << 20))
    return Fail(UsageError("the SQL is longer than 1 MiB", "ask for less"));
  if (text.find('\0') != std::string::npos)
    return Fail(UsageError("the SQL holds a zero byte", ""));
  std::vector<std::shared_ptr<const Collected>> results;
  const char* rest = text.c_str();
  while (*rest != 0) {
    const auto base = static_cast<size_t>(rest - text.c_str());
    sqlite3_stmt* raw = nullptr;
    const char* next = nullptr;
    int code = sqlite3_prepare_v3(impl.db, rest, -1, 0, &raw, &next);
    const Statement statement(raw);
    if (code != SQLITE_OK) return Fail(SqlError(impl, text, base, code));
    rest = next;
    if (raw == nullptr) continue;  // a comment or blanks
    if (sqlite3_stmt_readonly(raw) == 0 && !impl.options.allow_temp) {
      Error error =
          UsageError("not allowed: the statement writes", "queries only read");
      error.file = "SQL";
      SetPlace(error, text, base);
      return Fail(std::move(error));
    }
    LAMINA_TRY(Bind(raw, options.params));
    Collector collector(raw);
    uint64_t rows = 0;
    while ((code = sqlite3_step(raw)) == SQLITE_ROW) {
      ++rows;
      if (options.max_rows > 0 && rows > options.max_rows) {
        return Fail(LimitError("the result has more than " +
                                   std::to_string(options.max_rows) + " rows",
                               "add LIMIT, or raise ⟨max_rows⟩"));
      }
      if (options.keep_rows > 0 && rows > options.keep_rows) continue;
      collector.Add();
      if (options.max_bytes > 0 && collector.bytes() > options.max_bytes) {
        return Fail(LimitError("the result has more than " +
                                   std::to_string(options.max_bytes) + " bytes",
                               "ask for fewer rows or columns"));
      }
    }
    if (code != SQLITE_DONE) return Fail(SqlError(impl, text, base, code));
    if (sqlite3_column_count(raw) == 0) continue;
    results.push_back(collector.Finish());
    impl.row_counts.push_back(rows);
  }
  return results;
}

Status Database::Put(const Table& table) {
  Impl& impl = *impl_;
  if (!impl.options.allow_temp)
    return Fail(UsageError("temporary tables are not allowed", ""));
  impl.locked = false;
  Status status = FillPlain(impl, "temp", table);
  impl.locked = true;
  return status;
}

void Database::Show(const std::string& name, std::vector<std::string> columns,
                    std::shared_ptr<const Rows> rows, int sorted) {
  auto table = std::make_unique<TableFunction>();
  table->name = name;
  table->shown = true;
  table->sorted = sorted;
  for (std::string& column : columns)
    table->columns.push_back({std::move(column), Type::kInt, "", false});
  table->call = [rows = std::move(rows)](Impl&, std::span<const Value>)
      -> Result<std::shared_ptr<const Rows>> { return rows; };
  // The connection lets go of what had the name before.
  RegisterFunction(*impl_, *table);
  impl_->shown[name] = std::move(table);
}

Result<Table> Database::ReadView(const TableDef& view,
                                 const QueryOptions& options) {
  LAMINA_ASSIGN(const std::vector<Table> found,
                Run("SELECT * FROM \"" + view.name + "\"", options));
  Table out(SchemaOf(view));
  std::vector<Value> row(out.columns());
  for (size_t r = 0; r < found.front().rows(); ++r) {
    for (size_t c = 0; c < row.size(); ++c) row[c] = found.front().At(r, c);
    AddConverted(out, row);
  }
  return out;
}

Parameter ParameterOf(const std::string& text) {
  if (const auto whole = ParseInt(text)) return *whole;
  if (const auto real = ParseDouble(text)) return *real;
  return text;
}

std::vector<FunctionInfo> Functions() {
  std::vector<FunctionInfo> out = ScalarInfos();
  for (FunctionInfo& info : AggregateInfos()) out.push_back(std::move(info));
  for (const auto list : {TreeFunctions(), IntervalFunctions()}) {
    for (const TableFunction& f : list)
      out.push_back({f.name, "table", f.signature, f.doc, f.example});
  }
  return out;
}

Table ListTables() {
  const RowColumns<TableRow> columns{
      "lamina_tables",
      "Tables of lamina query.",
      {{"name", ColumnType::kText, "Name in SQL.", &TableRow::name},
       {"kind", ColumnType::kText, "model, result or view.", &TableRow::kind},
       {"cost", ColumnType::kText,
        "What the first query pays: free, tree or analysis.", &TableRow::cost},
       {"doc", ColumnType::kText, "What a row is.", &TableRow::doc}}};
  Table out(columns.schema());
  for (const TableDef& table : Tables())
    columns.Add(out, {.name = table.name,
                      .kind = TableKindName(table.kind),
                      .cost = CostName(table.cost),
                      .doc = table.doc});
  return out;
}

Table ListColumns() {
  const RowColumns<ColumnRow> columns{
      "lamina_columns",
      "Columns of the tables of lamina query.",
      {{"table_name", ColumnType::kText, "Table.", &ColumnRow::table_name},
       {"column_name", ColumnType::kText, "Column.", &ColumnRow::column_name},
       {"type", ColumnType::kText, "INTEGER, REAL or TEXT.", &ColumnRow::type},
       {"unit", ColumnType::kText, "Unit; empty: none.", &ColumnRow::unit},
       {"hidden", ColumnType::kInt, "1: by name only, not in *.",
        &ColumnRow::hidden},
       {"doc", ColumnType::kText, "What it means.", &ColumnRow::doc}}};
  Table out(columns.schema());
  for (const TableDef& table : Tables()) {
    for (const ColumnDef& c : table.columns) {
      columns.Add(out, {.table_name = table.name,
                        .column_name = c.name,
                        .type = TypeName(c.type),
                        .unit = c.unit(),
                        .hidden = int64_t{c.hidden},
                        .doc = c.doc});
    }
  }
  return out;
}

Table ListFunctions() {
  const RowColumns<FunctionRow> columns{
      "lamina_functions",
      "Functions that lamina adds to SQL.",
      {{"name", ColumnType::kText, "Name.", &FunctionRow::name},
       {"kind", ColumnType::kText, "scalar, aggregate or table.",
        &FunctionRow::kind},
       {"signature", ColumnType::kText, "How it is called.",
        &FunctionRow::signature},
       {"doc", ColumnType::kText, "What it gives.", &FunctionRow::doc},
       {"example", ColumnType::kText, "A query with it.",
        &FunctionRow::example}}};
  Table out(columns.schema());
  for (const FunctionInfo& f : Functions())
    columns.Add(out, {.name = f.name,
                      .kind = f.kind,
                      .signature = f.signature,
                      .doc = f.doc,
                      .example = f.example});
  return out;
}

}  // namespace lamina::sql
