// SPDX-License-Identifier: Apache-2.0
//
// Tables of SQL as columns, without SQL.
#include <cmath>

#include "base/decimal.h"
#include "base/stop.h"
#include "rules/document.h"
#include "sql/table_def.h"

namespace lamina::sql {
namespace {

ColumnType TypeOf(Type type) {
  switch (type) {
    case Type::kInt:
      return ColumnType::kInt;
    case Type::kReal:
      return ColumnType::kReal;
    case Type::kText:
      return ColumnType::kText;
  }
  return ColumnType::kText;
}

}  // namespace

Error NoSuchTable(std::string_view name) {
  std::vector<std::string_view> known;
  for (const TableDef& table : Tables()) known.push_back(table.name);
  const std::string_view near = rules::Nearest(name, known);
  return UsageError("there is no table '" + std::string(name) + "'",
                    near.empty() ? "⟨lamina⟩ list tables names them"
                                 : "did you mean '" + std::string(near) + "'?");
}

Schema SchemaOf(const TableDef& table) {
  Schema schema;
  schema.name = table.name;
  schema.doc = table.doc;
  for (const ColumnDef& column : table.columns) {
    if (!column.hidden)
      schema.columns.push_back({column.name, TypeOf(column.type), column.doc});
  }
  return schema;
}

void AddConverted(Table& table, std::vector<Value>& row) {
  std::vector<std::string> texts(row.size());  // that cells point to
  for (size_t c = 0; c < row.size(); ++c) {
    Value& cell = row[c];
    const Value::Kind kind = cell.kind();
    const bool text = kind == Value::Kind::kText;
    switch (table.schema().columns[c].type) {
      case ColumnType::kText:
        if (cell.null() || text) break;
        if (kind == Value::Kind::kReal) {
          AppendNumber(texts[c], cell.real());
        } else {
          AppendInt(texts[c], cell.integer());
        }
        cell = Value(texts[c]);
        break;
      case ColumnType::kReal:
        if (text) cell = Value();
        if (kind == Value::Kind::kReal && !std::isfinite(cell.real()))
          cell = Value();
        break;
      case ColumnType::kInt:
      case ColumnType::kTime:
      case ColumnType::kBool:
        if (kind == Value::Kind::kBool) cell = Value(cell.integer());
        if (text || kind == Value::Kind::kReal) cell = Value();
        break;
    }
  }
  table.AddRow(row);
}

Result<const analysis::Context*> Asked::Context(bool python_frames) const {
  analysis::Settings settings;
  settings.threads = session.threads();
  return session.ContextFor(tree::LinkMode::kAuto, python_frames, settings);
}

Result<std::shared_ptr<const Rows>> OpenRows(engine::Session& session,
                                             const TableDef& table,
                                             const engine::Watch& watch) {
  using Opened = Result<std::shared_ptr<const Rows>>;
  return EndedByStop(watch.stop, [&]() -> Opened {
    return session.kept().Get<Rows>("rows of " + table.name, [&]() -> Opened {
      LookForStop();
      return table.open({session, watch});
    });
  });
}

Result<Table> ReadTable(engine::Session& session, const TableDef& table,
                        const engine::Watch& watch) {
  LAMINA_ASSIGN(const auto rows, OpenRows(session, table, watch));
  LAMINA_TRY(
      EndedByStop(watch.stop, [&] { return rows->Prepare(~uint64_t{0}); }));
  std::vector<int> shown;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (!table.columns[c].hidden) shown.push_back(static_cast<int>(c));
  }
  Table out(SchemaOf(table));
  std::vector<Value> row(shown.size());
  for (size_t r = 0; r < rows->size(); ++r) {
    if (r % 65536 == 0 && watch.Stopped()) return Fail(CancelledError());
    for (size_t c = 0; c < shown.size(); ++c) row[c] = rows->Cell(r, shown[c]);
    AddConverted(out, row);
  }
  return out;
}

}  // namespace lamina::sql
