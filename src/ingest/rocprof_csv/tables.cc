// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof_csv/tables.h"

#include <algorithm>

#include "base/decimal.h"
#include "trace/trace.h"

namespace lamina::ingest::rocprof_csv {

int Column(const std::vector<std::string>& header,
           std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto it = std::find(header.begin(), header.end(), name);
    if (it != header.end()) return static_cast<int>(it - header.begin());
  }
  return -1;
}

TableKind KindOf(const std::vector<std::string>& header) {
  const auto has = [&](std::string_view name) {
    return Column(header, {name}) >= 0;
  };
  if (has("KernelName") && has("BeginNs") && has("EndNs"))
    return TableKind::kOldKernels;
  // Counters of rocprof-compute, by dispatch: their times are not measured.
  if (has("Dispatch_ID") && has("GPU_ID") && !has("Queue_ID") && !has("PID"))
    return TableKind::kNone;
  if (has("Agent_Type") && has("Node_Id")) return TableKind::kAgents;
  if (!has("Start_Timestamp") || !has("End_Timestamp")) return TableKind::kNone;
  if (has("Kernel_Name")) {
    return has("Counter_Name") && has("Counter_Value") ? TableKind::kCounters
                                                       : TableKind::kKernels;
  }
  if (has("Direction")) return TableKind::kCopies;
  if (has("Function")) return TableKind::kCalls;
  return TableKind::kNone;
}

int64_t PidOfName(std::string_view path) {
  const std::string_view name = path.substr(path.find_last_of('/') + 1);
  size_t digits = 0;
  while (digits < name.size() && name[digits] >= '0' && name[digits] <= '9')
    ++digits;
  if (digits == 0 || digits > 18 || name.substr(digits, 1) != "_") return 0;
  return ParseInt(name.substr(0, digits)).value_or(0);
}

int64_t AgentNumber(std::string_view text) {
  const size_t space = text.find_last_of(' ');
  if (space != std::string_view::npos) text.remove_prefix(space + 1);
  const auto number = ParseInt(text);
  return number && *number >= 0 ? *number : trace::kNoInt;
}

}  // namespace lamina::ingest::rocprof_csv
