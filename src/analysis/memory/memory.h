// SPDX-License-Identifier: Apache-2.0
//
// Memory of devices as the events of a trace tell it: [memory] instants of
// PyTorch's profiler and what other formats read into them. They state totals
// after every allocation and free; who asked follows from the op and the module
// that were open on the thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/context.h"

namespace lamina::analysis::memory {

struct Options {
  // "cpu", or the number of a device; empty: all devices but the host.
  std::string device;
  bool every_kind = false;  // memory_peak by op, module and category
  bool timeline = false;
  std::string by = "op";
};

// Tables memory_summary and memory_peak, and by options others; nothing
// for a trace without such events.
ResultSet MakeMemory(const Context& context, const Options& options);

// One event, in the order of time and file.
struct MemoryEvent {
  int64_t time_ns = 0;
  int64_t address = 0;
  int64_t bytes = 0;  // negative: freed
  uint32_t instant = 0;
  tree::NodeId op;  // innermost one that was open; invalid: none
};
// Of each GPU by its number, for joining with a snapshot.
std::map<int64_t, std::vector<MemoryEvent>> EventsByDevice(
    const Context& context);

}  // namespace lamina::analysis::memory
