// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/database_trace.h"

namespace lamina::ingest {
namespace {

constexpr size_t kShownName = 64;

}  // namespace

void NoteDatabase(const Database& database, std::string_view format,
                  trace::TraceBuilder& builder) {
  trace::Info& info = builder.info();
  info.format = format;
  info.file = database.name();
  info.file_bytes = database.file_bytes();
  info.input_bytes = database.file_bytes();
  info.plain = false;
  if (!database.log().empty()) {
    builder.diagnostics().Add(
        trace::Effect::kInfo, "database_log",
        "The database has a log beside it (" + database.log() +
            "), as of a program that did not close it: the log was applied to "
            "a copy, which was read.");
  }
  if (database.missing_bytes() > 0) {
    builder.diagnostics().Add(
        trace::Effect::kLost, "file_cut_off",
        "The database ends before the size that its header gives: copy or "
        "export it again.",
        database.file_bytes(), 1, database.missing_bytes());
  }
  for (const std::string& table : database.unreadable_tables()) {
    builder.diagnostics().Add(
        trace::Effect::kLost, "table_unreadable",
        "The definition of a table is damaged and none of its rows is read: " +
            table.substr(0, kShownName) + ".");
  }
}

void NoteTablesNotRead(const Database& database,
                       absl::FunctionRef<bool(std::string_view)> is_known,
                       trace::Diagnostics& diagnostics) {
  constexpr size_t kShownTables = 12;
  std::string names;
  size_t count = 0;
  for (const DatabaseTable& table : database.tables()) {
    if (is_known(table.name)) continue;
    Rows rows = database.Scan(&table, {table.columns[0]});
    if (!rows.Next()) continue;
    if (++count <= kShownTables && table.name.size() < kShownName)
      names += (names.empty() ? "" : ", ") + table.name;
  }
  if (count == 0) return;
  diagnostics.Add(
      trace::Effect::kInfo, "tables_not_read",
      "Tables with records that lamina does not use: " + names + ".",
      trace::Diagnostics::kNoOffset, count);
}

void NoteBreak(const DatabaseTable& table, const PassEnd& end,
               trace::Diagnostics& diagnostics) {
  if (end.damage.empty()) return;
  diagnostics.Add(trace::Effect::kLost, "table_breaks_off",
                  "A table of the database is damaged and read only in part: " +
                      table.name + " after " + std::to_string(end.rows) +
                      " rows (" + end.damage + ").");
}

}  // namespace lamina::ingest
