// SPDX-License-Identifier: Apache-2.0
//
// The connection behind a Database, for the files of this folder.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <sqlite3.h>

#include "sql/database.h"
#include "sql/table_def.h"

namespace lamina::sql {

// A table-valued function: FROM name(args). Arguments are hidden columns
// behind the others.
struct TableFunction {
  std::string name;
  std::string signature;
  std::string doc;
  std::string example;
  std::vector<ColumnDef> columns;
  std::vector<std::string> args;
  size_t required = 0;  // of args
  std::function<Result<std::shared_ptr<const Rows>>(
      Database::Impl&, std::span<const Value> args)>
      call;
  // By Database::Show: its rows outlive every query, and its columns have no
  // type.
  bool shown = false;
  int sorted = -1;  // column by which its rows rise; -1: none
};
std::span<const TableFunction> TreeFunctions();
std::span<const TableFunction> IntervalFunctions();

struct Database::Impl {
  ~Impl();

  sqlite3* db = nullptr;
  DatabaseOptions options;
  std::vector<SchemaInput> schemas;
  // What modules are registered with; never moves.
  struct ModuleAux {
    Impl* impl;
    const TableFunction* function;  // or
    const TableDef* table;          // of those that are not listed; else null
  };
  std::vector<std::unique_ptr<ModuleAux>> aux;
  std::map<std::string, std::unique_ptr<TableFunction>> shown;

  bool locked = false;     // after set-up: the authorizer decides
  bool declaring = false;  // inside sqlite3_declare_vtab
  int depth = 0;           // of statements inside functions
  // The error of a callback, in full; SQLite passes on only its text.
  std::optional<Error> failed;
  // The query that runs.
  const std::atomic<bool>* stop = nullptr;
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::time_point::max();
  std::chrono::milliseconds time_limit{0};
  std::vector<uint64_t> row_counts;

  // Whether the query must end; sets `failed` then.
  bool MustStop();
  Status Execute(const char* sql);
  // The first trace, of which functions without a table are asked.
  engine::Session& first() { return *schemas.front().sources.front(); }
  Result<engine::Session*> SessionOf(std::string_view schema);
};

// Registers what the names say on the connection.
void RegisterTables(Database::Impl& impl);  // module.cc
// In place of one of its name. `function` must live as long as the connection,
// or until another one takes its place.
void RegisterFunction(Database::Impl& impl, const TableFunction& function);
void RegisterScalars(Database::Impl& impl);     // functions.cc
void RegisterAggregates(Database::Impl& impl);  // aggregates.cc
void RegisterBounded(Database::Impl& impl);     // bounded_functions.cc
std::vector<FunctionInfo> ScalarInfos();
std::vector<FunctionInfo> AggregateInfos();

// A cell of SQLite as a value; text lives as long as SQLite keeps it.
Value ValueOf(sqlite3_value* value);
void SetResult(sqlite3_context* context, const Value& value,
               sqlite3_destructor_type lifetime);

}  // namespace lamina::sql
