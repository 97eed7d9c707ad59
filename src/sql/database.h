// SPDX-License-Identifier: Apache-2.0
//
// SQL over opened traces: a read-only SQLite connection whose tables are the
// rows of the traces and the results of analyses, run when a query reads them.
//
//   auto session = engine::Session::Open("trace.json.gz", open);
//   auto database = sql::Database::Open({{"main", {source}}}, {});
//   auto tables = (*database)->Run("SELECT name, sum(dur_ns) FROM kernel ...");
//
// A database belongs to one thread at a time; many may share a source, and
// share what it has made. Only SELECT, VALUES, EXPLAIN and a few PRAGMAs that
// describe tables are allowed.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "engine/session.h"
#include "lamina/table.h"
#include "sql/collected.h"
#include "sql/table_def.h"

namespace lamina::sql {

// A named group of tables: "main", or what the user called a trace. With
// several sources every table has the rows of all behind a column `rank`.
struct SchemaInput {
  std::string name = "main";
  std::vector<std::shared_ptr<engine::Session>> sources;
  std::vector<int64_t> ranks;  // of the sources; empty: a single trace
};

using Parameter = std::variant<std::monostate, int64_t, double, std::string>;
// A value that is given as text: a whole number, a number or text.
Parameter ParameterOf(const std::string& text);

struct QueryOptions {
  std::chrono::milliseconds time_limit{0};  // 0: none
  uint64_t max_rows = 0;                    // of one result; 0: any
  uint64_t max_bytes = 0;                   // of its texts and cells; 0: any
  // At most this many rows are kept and the rest is only counted; 0: all.
  uint64_t keep_rows = 0;
  // Values of :name, @name and $name; std::monostate is NULL.
  std::map<std::string, Parameter> params;
  // Set from another thread to end the query.
  const std::atomic<bool>* stop = nullptr;
};

struct DatabaseOptions {
  bool allow_temp = false;  // TEMP tables and views
  bool push_down = true;    // for tests: false reads every row
  // Whether the tables stand in sqlite_schema, and the lamina_* ones that
  // describe them are there. Without, tables are known by name only, of one
  // trace `main`, and to open costs next to nothing.
  bool listed = true;
};

class Database {
 public:
  // Errors: kUsage for names of schemas that SQL cannot use or that repeat.
  static Result<std::unique_ptr<Database>> Open(
      std::vector<SchemaInput> schemas, const DatabaseOptions& options = {});
  ~Database();

  // Runs all statements; a table per statement that gives rows, named result,
  // result_2 ... A column is an integer, a real number or text by its cells.
  // Errors: kUsage with line, column and excerpt for SQL that is wrong or not
  // allowed, kInput for a trace that cannot be read, kLimit, kCancelled.
  Result<std::vector<Table>> Run(std::string_view sql,
                                 const QueryOptions& options = {});
  // The same as the cells that there are, of which no table is made.
  Result<std::vector<std::shared_ptr<const Collected>>> Collect(
      std::string_view sql, const QueryOptions& options = {});
  // Shows rows as the table `name`, in place of what was shown by it, for as
  // long as the database lives. Its columns have no type, as their cells may
  // be of any. `sorted`: a column that never falls.
  void Show(const std::string& name, std::vector<std::string> columns,
            std::shared_ptr<const Rows> rows, int sorted = -1);
  // Puts a copy of a table among the temporary ones, in place of one of its
  // name. Errors: kUsage without DatabaseOptions::allow_temp.
  Status Put(const Table& table);
  // All rows of a view, as ReadTable gives those of the others.
  Result<Table> ReadView(const TableDef& view, const QueryOptions& options);
  // Rows of each result of the last Run, with those not kept.
  const std::vector<uint64_t>& row_counts() const;

  // Writes a file for any SQLite tool. `sql`: its results as tables result,
  // result_2 ...; empty: all result tables of the main schema, and with
  // `model` all others. An existing file is replaced when all is written.
  Status Export(const std::string& path, std::string_view sql, bool model,
                const QueryOptions& options = {});

  struct Impl;

 private:
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What lamina adds to SQL, for lists and documents.
struct FunctionInfo {
  std::string name;
  std::string kind;  // scalar, aggregate, table
  std::string signature;
  std::string doc;
  std::string example;  // a SELECT that runs on any trace
};
std::vector<FunctionInfo> Functions();

// Tables lamina_tables, lamina_columns and lamina_functions as results, without
// a trace.
Table ListTables();
Table ListColumns();
Table ListFunctions();

}  // namespace lamina::sql
