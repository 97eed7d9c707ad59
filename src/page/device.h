// SPDX-License-Identifier: Apache-2.0
//
// Device events as a page knows them: with the rows of the tables that count
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/layers/layers.h"
#include "lamina/result.h"

namespace lamina::page {

// One device event. kernel ... step are row + 1 of a table, 0 for none.
struct DeviceRow {
  int64_t start_ns = 0;  // since the first event of the trace
  int64_t dur_ns = 0;
  uint32_t lane = 0;  // position in trace.streams
  uint32_t kernel = 0;
  uint32_t family = 0;
  uint32_t op = 0;
  uint32_t module = 0;
  uint32_t layer = 0;
  uint32_t pass = 0;
  uint32_t step = 0;
  uint32_t call = 0;   // of its op, from 1; 0: of none
  uint32_t place = 0;  // row + 1 of variant_kernels
  uint32_t graph = 0;  // row + 1 of graph_attribution
  uint32_t rule = 0;   // row + 1 of family_rules
  trace::SliceId slice;
};

// Lane by lane, by start, without places. `document` is the one of the page.
std::vector<DeviceRow> DeviceRows(const analysis::Context& context,
                                  const analysis::layers::LayerModel& layers,
                                  const Document& document);

}  // namespace lamina::page
