// SPDX-License-Identifier: Apache-2.0
//
// May I believe this report? Coverage, what was lost, what looks impossible,
// what the recording lacks.
#include "analysis/health/checks.h"

namespace lamina::analysis::health {
namespace {

Result<ResultSet> Run(const Context& context) {
  CheckTable table;
  CheckCoverage(context, table);
  LAMINA_TRY(CheckCosts(context, table));
  for (const auto& check :
       {CheckRecording, CheckLaunches, CheckStructure, CheckRecords})
    check(context, table);
  ResultSet result;
  result.tables.push_back(table.Take());
  return result;
}

}  // namespace

const RowColumns<CheckRow>& CheckColumns() {
  static const RowColumns<CheckRow> columns{
      "trace_health",
      "How far the numbers can be trusted.",
      {{"check", ColumnType::kText, "Stable name of the check.",
        &CheckRow::check},
       {"status", ColumnType::kText,
        "ok, info, warn, or lost (something is in no number).",
        &CheckRow::status},
       {"value", ColumnType::kText, "What was found.", &CheckRow::value},
       {"meaning", ColumnType::kText,
        "What it means for the other tables and what to do.",
        &CheckRow::meaning},
       {"count", ColumnType::kInt, "Events concerned.", &CheckRow::count,
        Shown::kHidden},
       {"percent", ColumnType::kReal, "Share, where it is one.",
        &CheckRow::percent, Shown::kHidden},
       {"first_offset", ColumnType::kInt,
        "Byte in the unpacked input of the first of them.",
        &CheckRow::first_offset, Shown::kHidden}}};
  return columns;
}

AnalysisInfo Info() {
  return {"health", "Coverage, losses and oddities of the trace.",
          [] { return std::vector<Schema>{CheckColumns().schema()}; }, &Run};
}

}  // namespace lamina::analysis::health
