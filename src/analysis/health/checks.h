// SPDX-License-Identifier: Apache-2.0
//
// The checks behind trace_health, by what they look at. Each adds its rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "analysis/common/context.h"
#include "table/row_columns.h"

namespace lamina::analysis::health {

struct CheckRow {
  std::string_view check, status, value, meaning;
  std::optional<int64_t> count = {};
  std::optional<double> percent = {};
  std::optional<int64_t> first_offset = {};
};
const RowColumns<CheckRow>& CheckColumns();

class CheckTable {
 public:
  void Add(const CheckRow& row) { CheckColumns().Add(table_, row); }
  Table Take() { return std::move(table_); }

 private:
  Table table_{CheckColumns().schema()};
};

// How much of the device time is linked to a launch, and in a category.
void CheckCoverage(const Context& context, CheckTable& out);
// How much of the linked time, without communication, has a cost model, and
// which device the rooflines are for.
Status CheckCosts(const Context& context, CheckTable& out);
// What the recording has and what it lacks.
void CheckRecording(const Context& context, CheckTable& out);
// Launch calls whose work is not in the file; graph launches.
void CheckLaunches(const Context& context, CheckTable& out);
// Events that overlap where they cannot, and events that are too long.
void CheckStructure(const Context& context, CheckTable& out);
// What the reader said of the records.
void CheckRecords(const Context& context, CheckTable& out);

}  // namespace lamina::analysis::health
