// SPDX-License-Identifier: Apache-2.0
//
// Device events as pages know them: with the rows of the tables that count
// them; of several traces one after the other, with the table of what they are
// called.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/layers/layers.h"
#include "lamina/result.h"
#include "lamina/table.h"
#include "render/html/page.h"

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

// The block "device" of a page of several traces.

class DeviceColumns {
 public:
  struct Event {
    int64_t start_ns = 0;  // on the axis of the page
    int64_t dur_ns = 0;
    size_t family = 0;
    int64_t uid = 0;     // in the page
    int64_t kernel = 0;  // row + 1 of the table kernels
  };
  void Add(const Event& event);
  // The value of the last event in a further column: row + 1 of a table, or 0,
  // which is also that of events without a value. `is_delta` as in
  // render::Block::Add.
  void Set(std::string_view column, int64_t value, bool is_delta = false);

  size_t rows() const { return start_.size(); }
  void AddTo(render::Page& page) const;

 private:
  struct Further {
    std::string_view name;
    bool is_delta = false;
    std::vector<int64_t> values;
  };
  std::vector<int64_t> start_, dur_, family_, uid_, kernel_;
  std::vector<Further> further_;
};

// The table `kernels` of a page of several traces: what its device events are
// called. Times are those of the events in the page.

// The op above the launch of an event, else the launch, as in the kernels of a
// report; empty without a launch.
std::string_view LauncherName(const analysis::Context& context,
                              trace::SliceId slice);

class PageKernels {
 public:
  // Row + 1 of an event of the trace with this name, which it counts.
  int64_t RowOf(const analysis::Context& context, trace::SliceId slice,
                std::string_view trace_name);
  // The same for an event that is known by texts. The name of the trace is
  // empty where the rows are those of all traces.
  int64_t RowOf(std::string_view trace_name, std::string_view kernel,
                std::string_view op, std::string_view family, int64_t dur_ns);
  Table Take() const;

 private:
  struct Row {
    std::string trace, kernel, op, family;
    int64_t count = 0;
    int64_t time_ns = 0;
  };
  std::vector<Row> rows_;
  absl::flat_hash_map<std::tuple<std::string, std::string, std::string>, size_t>
      ids_;
};

}  // namespace lamina::page
