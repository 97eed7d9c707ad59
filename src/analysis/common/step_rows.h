// SPDX-License-Identifier: Apache-2.0
//
// Which device events one row of the table steps is made of: the table and the
// page that joins its events to rows take it from here.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/common/timeline.h"

namespace lamina::analysis {

// Work of one step, or of none, on one device.
struct StepRow {
  size_t step = 0;               // steps().size(): outside of all
  std::optional<size_t> device;  // index into devices; none: no device worked
  std::vector<SliceId> work;
  Timeline timeline;
  // Nothing of any step ran on the device, from its first work of this step to
  // that of the next; the rows of a device add up to its idle time.
  int64_t idle_ns = 0;
  int64_t overlap_ns = 0;  // behind the first work of the next step
};

struct StepRows {
  std::vector<DeviceWork> devices;
  // In the order of the table: by step and device, those outside last. Empty
  // where the recording has no steps.
  std::vector<StepRow> rows;

  static StepRows Build(const Context& context);
  // By row of device arguments (Slices::detail): the index into `rows`, at
  // least rows.size() where no row counts it.
  std::vector<uint32_t> RowOf(const Context& context) const;
};

}  // namespace lamina::analysis
