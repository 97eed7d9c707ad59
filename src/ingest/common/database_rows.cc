// SPDX-License-Identifier: Apache-2.0
//
// The rows of a database: values, passes step by step and passes in which
// SQLite runs the loop.
#include <algorithm>
#include <cmath>
#include <sqlite3.h>
#include <utility>

#include "ingest/common/database.h"
#include "ingest/common/table_reader.h"

namespace lamina::ingest {
namespace {

constexpr const char* kTooManyRows =
    "the table has more rows than the file has room for";

}  // namespace

bool Row::ReadInt(int column, int64_t& value) const {
  sqlite3_value* from = values_[static_cast<size_t>(column)];
  switch (from != nullptr ? sqlite3_value_type(from) : SQLITE_NULL) {
    case SQLITE_INTEGER:
      value = sqlite3_value_int64(from);
      return true;
    case SQLITE_FLOAT: {
      // Whole numbers only, as far as a double holds them exactly.
      const double real = sqlite3_value_double(from);
      if (real != std::floor(real) || std::fabs(real) > 9e15) return false;
      value = static_cast<int64_t>(real);
      return true;
    }
    default:
      return false;
  }
}

std::optional<double> Row::Real(int column) const {
  sqlite3_value* value = values_[static_cast<size_t>(column)];
  if (value == nullptr) return std::nullopt;
  const int type = sqlite3_value_type(value);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return std::nullopt;
  return sqlite3_value_double(value);
}

std::optional<std::string_view> Row::Text(int column) const {
  sqlite3_value* value = values_[static_cast<size_t>(column)];
  if (value == nullptr || sqlite3_value_type(value) != SQLITE_TEXT)
    return std::nullopt;
  const unsigned char* text = sqlite3_value_text(value);
  if (text == nullptr) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(text),
                          static_cast<size_t>(sqlite3_value_bytes(value)));
}

// --------------------------------------------------------------------------

Rows::Rows(sqlite3* connection, const DatabaseTable* table, Columns columns,
           uint64_t* rows_left, std::string_view condition)
    : connection_(connection), rows_left_(rows_left) {
  values_.resize(columns.size());
  if (table == nullptr) return;
  std::string sql = "SELECT NULL";
  int place = 0;
  for (const std::string_view column : columns) {
    places_.push_back(table->Has(column) ? ++place : -1);
    if (places_.back() > 0) sql += "," + QuotedName(column);
  }
  sql += " FROM " + QuotedName(table->name);
  // The order of the table, not that of an index.
  sql += condition.empty()
             ? " NOT INDEXED"
             : " WHERE " + QuotedName(condition) + " = ?1 LIMIT 1";
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
      for (size_t i = 0; i < places_.size(); ++i) {
        if (places_[i] > 0)
          values_[i] = sqlite3_column_value(statement_, places_[i]);
      }
      return true;
    }
    damage_ = kTooManyRows;
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

// --------------------------------------------------------------------------

// A pass in which SQLite runs the loop: an aggregate function gets every row.
struct Database::Pass {
  const std::function<void(const Row&)>& read;
  std::optional<int64_t> stop;
  uint64_t* rows_left;
  Row row;
  std::vector<size_t> columns;  // of the values
  PassEnd end;
  bool over = false;
};

void Database::OnRow(sqlite3_context* context, int count,
                     sqlite3_value** values) {
  Pass& pass = **static_cast<Pass**>(sqlite3_user_data(context));
  if (pass.over) return;
  if (pass.stop) {
    if (sqlite3_value_int64(values[0]) == *pass.stop)
      pass.over = pass.end.stopped = true;
    ++values;
    --count;
  }
  if (!pass.over && *pass.rows_left == 0) {
    pass.end.damage = kTooManyRows;
    pass.over = true;
  }
  if (pass.over) return sqlite3_result_error_code(context, SQLITE_ABORT);
  --*pass.rows_left;
  ++pass.end.rows;
  for (size_t i = 0; i < pass.columns.size(); ++i)
    pass.row.values_[pass.columns[i]] = values[i];
  pass.read(pass.row);
}

PassEnd Database::ForEach(const DatabaseTable* table, Columns columns,
                          const std::function<void(const Row&)>& read,
                          const RowRange& range) const {
  // A damaged page that is already in memory may be found damaged earlier or
  // later, so that rows would depend on what a connection did before.
  sqlite3_db_release_memory(connection_);
  Pass pass{read, range.stop, &rows_left_, {}, {}, {}};
  if (table == nullptr) return {};
  pass.row.values_.resize(columns.size());
  std::string arguments = range.stop ? "," + table->row_id : "";
  size_t number = 0;
  for (const std::string_view column : columns) {
    if (table->Has(column)) {
      arguments += "," + QuotedName(column);
      pass.columns.push_back(number);
    }
    ++number;
  }
  std::string sql = "SELECT " + std::string(kRowFunction) + "(" +
                    arguments.substr(arguments.empty() ? 0 : 1) + ") FROM " +
                    QuotedName(table->name) + " NOT INDEXED";
  if (range.first) sql += " WHERE " + table->row_id + " >= ?1";
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(connection_, sql.c_str(), -1, &statement, nullptr) ==
      SQLITE_OK) {
    if (range.first) sqlite3_bind_int64(statement, 1, *range.first);
    Pass* outer = std::exchange(*pass_, &pass);
    const int code = sqlite3_step(statement);
    *pass_ = outer;
    if (code == SQLITE_ROW) pass.over = true;
  }
  if (!pass.over) pass.end.damage = sqlite3_errmsg(connection_);
  sqlite3_finalize(statement);
  return std::move(pass.end);
}

std::vector<int64_t> Database::Cuts(const DatabaseTable& table,
                                    uint64_t rows) const {
  // A table with wide gaps between its ids gets no more ranges than that.
  constexpr uint64_t kMinRangeBytes = 1 << 15;
  std::vector<int64_t> cuts;
  if (table.row_id.empty()) return cuts;
  const std::string select = "SELECT " + table.row_id + " FROM " +
                             QuotedName(table.name) + " NOT INDEXED";
  const auto find = [&](const std::string& which,
                        std::optional<int64_t> at) -> std::optional<int64_t> {
    std::optional<int64_t> id;
    sqlite3_stmt* statement = nullptr;
    const std::string sql = select + which + " LIMIT 1";
    if (sqlite3_prepare_v2(connection_, sql.c_str(), -1, &statement, nullptr) ==
        SQLITE_OK) {
      if (at) sqlite3_bind_int64(statement, 1, *at);
      if (sqlite3_step(statement) == SQLITE_ROW)
        id = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return id;
  };
  const std::string order = " ORDER BY " + table.row_id;
  const auto least = find(order, {});
  const auto most = find(order + " DESC", {});
  if (!least || !most || *most <= *least) return cuts;
  const uint64_t span =
      static_cast<uint64_t>(*most) - static_cast<uint64_t>(*least);
  const uint64_t ranges =
      std::min(span / rows, file_bytes_ / kMinRangeBytes) + 1;
  int64_t last = *least;
  for (uint64_t i = 1; i < ranges; ++i) {
    const auto at = static_cast<int64_t>(static_cast<uint64_t>(*least) +
                                         (span / ranges + 1) * i);
    const auto id = find(" WHERE " + table.row_id + " >= ?1" + order, at);
    if (!id) break;
    if (*id > last) cuts.push_back(last = *id);
  }
  return cuts;
}

Rows Database::Scan(const DatabaseTable* table, Columns columns) const {
  return {connection_, table, columns, &rows_left_};
}

std::unique_ptr<Rows> Database::Lookup(const DatabaseTable* table,
                                       Columns columns,
                                       std::string_view key) const {
  return std::make_unique<Rows>(connection_, table, columns, &rows_left_, key);
}

}  // namespace lamina::ingest
