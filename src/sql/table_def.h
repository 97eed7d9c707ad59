// SPDX-License-Identifier: Apache-2.0
//
// A table that SQL can name: what it is, and how its rows are got when a query
// reads it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/session.h"
#include "lamina/result.h"
#include "lamina/table.h"
#include "sql/rows.h"

namespace lamina::sql {

enum class Type : uint8_t { kInt, kReal, kText };
std::string_view TypeName(Type type);  // "INTEGER", "REAL", "TEXT"

struct ColumnDef {
  std::string name;  // snake_case with the unit
  Type type = Type::kInt;
  std::string doc;      // one sentence
  bool hidden = false;  // by name only, not in `*`
  std::string unit() const;
};

enum class TableKind : uint8_t {
  kModel,   // rows of the trace and its tree
  kResult,  // a table of an analysis
  kView,    // a SELECT over the others
};
std::string_view TableKindName(TableKind kind);

// What the first query pays: nothing, the call tree, or an analysis.
enum class Cost : uint8_t { kFree, kTree, kAnalysis };
std::string_view CostName(Cost cost);

// The trace whose rows are asked for, and who watches that.
struct Asked {
  engine::Session& session;
  const engine::Watch& watch;

  const trace::Trace& trace() const { return session.trace(); }
  // With default settings; with Python frames in the tree, or without.
  Result<const analysis::Context*> Context(bool python_frames = false) const;
  template <class F>
  Result<const F*> Get() const {
    LAMINA_ASSIGN(const analysis::Context* const context, Context());
    return context->Get<F>();
  }
};

// NULL for what was not recorded.
inline Value Known(int64_t value) {
  return value == trace::kNoInt ? Value() : Value(value);
}

struct TableDef {
  std::string name;
  std::string doc;
  TableKind kind = TableKind::kModel;
  Cost cost = Cost::kFree;
  std::vector<ColumnDef> columns;
  std::function<Result<std::shared_ptr<const Rows>>(const Asked&)> open;
  std::string select;  // kView
};

// The tables of every trace. Model rows are singular, results of analyses
// plural. Nothing is read or run.
std::span<const TableDef> Tables();
const TableDef* FindTable(std::string_view name);
// The tables that a query names, in its order, each once.
std::vector<const TableDef*> TablesIn(std::string_view sql);
// "ops has op, family, ...".
std::string ColumnsText(const TableDef& table);
// kUsage with the nearest name.
Error NoSuchTable(std::string_view name);

// A table as columns: those that are not hidden.
Schema SchemaOf(const TableDef& table);
// The rows of one that is no view: made once for each trace and kept with it.
Result<std::shared_ptr<const Rows>> OpenRows(engine::Session& session,
                                             const TableDef& table,
                                             const engine::Watch& watch = {});
// The same as a table.
Result<Table> ReadTable(engine::Session& session, const TableDef& table,
                        const engine::Watch& watch);
// Row by row into a table of that schema: a cell of another type than its
// column is converted.
void AddConverted(Table& table, std::vector<Value>& row);

// The parts of the list.
void AddModelTables(std::vector<TableDef>& tables);   // by trace/fields.h
void AddTreeTables(std::vector<TableDef>& tables);    // node, step, modules
void AddSliceTables(std::vector<TableDef>& tables);   // kernel, op, api_call...
void AddResultTables(std::vector<TableDef>& tables);  // of analyses
void AddEventTables(std::vector<TableDef>& tables);   // for rules of findings
void AddCompiledTables(std::vector<TableDef>& tables);  // --compiled
void AddViews(std::vector<TableDef>& tables);

// A table of a result; its times x_us are x_ns in SQL, exact.
using ResultOf = std::function<Result<std::shared_ptr<const ResultSet>>(
    const Asked& source)>;
TableDef ResultTable(const Schema& schema, ResultOf result_of);
// A table of integers and texts that `fill` writes as a whole.
TableDef FilledTable(
    std::string name, std::string doc, std::vector<ColumnDef> columns,
    std::function<Status(const Asked& source, Table& out)> fill);

}  // namespace lamina::sql
