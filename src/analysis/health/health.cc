// SPDX-License-Identifier: Apache-2.0
//
// May I believe this report? Coverage, what was lost, what looks impossible,
// what the recording lacks.
#include "analysis/health/checks.h"

namespace lamina::analysis::health {
namespace {

Result<ResultSet> Run(const Context& context) {
  CheckTable table;
  for (const auto& check : {CheckCoverage, CheckCosts, CheckRecording,
                            CheckLaunches, CheckStructure, CheckRecords})
    check(context, table);
  ResultSet result;
  result.tables.push_back(table.Take());
  return result;
}

}  // namespace

Schema HealthSchema() {
  return {
      "trace_health",
      "How far the numbers can be trusted.",
      {{"check", ColumnType::kText, "Stable name of the check."},
       {"status", ColumnType::kText,
        "ok, info, warn, or lost (something is in no number)."},
       {"value", ColumnType::kText, "What was found."},
       {"meaning", ColumnType::kText,
        "What it means for the other tables and what to do."},
       {"count", ColumnType::kInt, "Events concerned.", Shown::kHidden},
       {"percent", ColumnType::kReal, "Share, where it is one.",
        Shown::kHidden},
       {"first_offset", ColumnType::kInt,
        "Byte in the unpacked input of the first of them.", Shown::kHidden}}};
}

CheckTable::CheckTable() : table_(HealthSchema()) {}

AnalysisInfo Info() {
  return {"health", "Coverage, losses and oddities of the trace.",
          [] { return std::vector<Schema>{HealthSchema()}; }, &Run};
}

}  // namespace lamina::analysis::health
