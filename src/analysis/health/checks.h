// SPDX-License-Identifier: Apache-2.0
//
// The checks behind trace_health, by what they look at. Each adds its rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "analysis/common/context.h"

namespace lamina::analysis::health {

class CheckTable {
 public:
  CheckTable();

  void Add(std::string_view check, std::string_view status,
           std::string_view value, std::string_view meaning,
           std::optional<int64_t> count = std::nullopt,
           std::optional<double> percent = std::nullopt,
           std::optional<int64_t> offset = std::nullopt) {
    table_.Add(check, status, value, meaning, count, percent, offset);
  }
  Table Take() { return std::move(table_); }

 private:
  Table table_;
};
Schema HealthSchema();

// How much of the device time is linked to a launch, and in a category.
void CheckCoverage(const Context& context, CheckTable& out);
// How much of the linked time, without communication, has a cost model, and
// which device the rooflines are for.
void CheckCosts(const Context& context, CheckTable& out);
// What the recording has and what it lacks.
void CheckRecording(const Context& context, CheckTable& out);
// Launch calls whose work is not in the file; graph launches.
void CheckLaunches(const Context& context, CheckTable& out);
// Events that overlap where they cannot, and events that are too long.
void CheckStructure(const Context& context, CheckTable& out);
// What the reader said of the records.
void CheckRecords(const Context& context, CheckTable& out);

}  // namespace lamina::analysis::health
