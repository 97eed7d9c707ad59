// SPDX-License-Identifier: Apache-2.0
//
// The CPUs and GPUs of a run, by number of their node.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "ingest/rocprof_csv/sheets.h"
#include "trace/builder.h"

namespace lamina::ingest::rocprof_csv {

struct Agent {
  bool gpu = false;
  int64_t number = trace::kNoInt;  // of the GPU
  trace::DeviceInfo device;
};

class Agents {
 public:
  // Adds the rows of a sheet of agents, counted as events of `segment`.
  Status Read(Sheet& sheet, trace::Segment& segment);
  // Numbers the GPUs in the order of their nodes; returns what is known of
  // them. Call when all sheets are read.
  std::vector<trace::DeviceInfo> Number();

  // "Agent 2", "GPU 0"; null when it is unknown.
  const Agent* Find(std::string_view text) const;
  int64_t DeviceOf(std::string_view text) const;

 private:
  std::map<int64_t, Agent> agents_;  // by node
};

}  // namespace lamina::ingest::rocprof_csv
