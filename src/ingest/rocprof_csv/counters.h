// SPDX-License-Identifier: Apache-2.0
//
// counter_collection.csv: one row per dispatch and counter, so that its rows
// are no dispatches. They are read before all others and joined by dispatch:
// counters of a kernel_trace.csv of the same process go to its kernels; without
// one the dispatches themselves come from here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ingest/rocprof_csv/agents.h"
#include "ingest/rocprof_csv/sheets.h"
#include "trace/segment.h"

namespace lamina::ingest::rocprof_csv {

struct CounterValue {
  std::string name;
  double value = 0;
};

class CounterTable {
 public:
  // Reads a sheet. With `emit` its dispatches become kernels of the segment.
  Status Read(Sheet& sheet, const Agents& agents, bool emit,
              trace::LocalNames& names, trace::Segment& segment);

  // Of a dispatch of a kernel sheet; null: none.
  const std::vector<CounterValue>* Find(uint32_t process,
                                        int64_t dispatch) const;
  bool empty() const { return counters_.empty(); }

 private:
  std::map<std::pair<uint32_t, int64_t>, std::vector<CounterValue>> counters_;
};

// Adds rows of event_counters for the event that is added next.
void AddCounters(const std::vector<CounterValue>& values,
                 trace::LocalNames& names, trace::Segment& segment);

}  // namespace lamina::ingest::rocprof_csv
