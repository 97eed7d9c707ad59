// SPDX-License-Identifier: Apache-2.0
//
// The table `kernels` of a page of several traces: what its device events are
// called. Times are those of the events in the page.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/common/context.h"
#include "lamina/table.h"

namespace lamina::page {

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
