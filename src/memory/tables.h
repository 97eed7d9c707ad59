// SPDX-License-Identifier: Apache-2.0
//
// The tables of `lamina memory` on one snapshot.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/result.h"
#include "memory/attribution.h"
#include "memory/model.h"
#include "memory/questions.h"
#include "memory/schemas.h"

namespace lamina::memory {

struct TableOptions {
  std::optional<int64_t> device;
  Measure peak = Measure::kActive;
  // The moment that is looked at: a number, "end", "oom", "step:K" or a time
  // from the first event ("+12.5ms"); empty: the peak.
  std::string at;
  std::string by = "category";  // or module, op, line, stack, stream, pool
  size_t depth = 0;             // parts of a path of modules; 0: all
  bool every_kind = false;      // a table per kind beside memory_peak
  bool all = false;             // allocations of all times
  bool full = false;            // every moment of the timeline
  bool native = false;          // native frames in the tree
  bool over_time = false;       // memory_fragmentation_over_time
  size_t leak_steps = 3;
  std::optional<int64_t> capacity;
  std::string steps;    // RE2 on names of annotations
  std::string own;      // RE2 on paths of frames
  std::string explain;  // a line: why its largest allocation has its category
  // Events; peaks, lists and curves are of the moments between them.
  std::optional<int64_t> from, to;
};

// What a trace of the same run says of allocations.
struct TraceFacts {
  struct Row {
    StringId op, module, step, thread;  // invalid: the trace does not know it
  };
  std::vector<Row> of;  // by allocation; empty: there is no trace
  StringPool texts;
};

// One device with what was found out about it.
struct DeviceView {
  std::unique_ptr<Device> device;
  std::unique_ptr<Attribution> attribution;
  Steps steps;
  std::vector<Leak> leaks;
  Moment first = 0;  // of the range that is looked at
  Moment last = 0;
  Peak peaks[kMeasures];  // in that range
  Moment moment = 0;      // whose composition is shown

  // Of stacks, in the order of the first allocation of each: the same however
  // the file is written.
  std::vector<uint32_t> stack_numbers;

  TraceFacts joined;

  // Of the joined trace where it knows the allocation, else by its stack.
  std::string_view Op(const Allocation& a) const;
  // With the first `depth` parts; 0: all.
  std::string_view Module(const Allocation& a, size_t depth) const;
  const TraceFacts::Row* TraceOf(const Allocation& a) const;
};

// A snapshot that is read, with all its devices. `snapshot` stays in place.
struct Recording {
  std::unique_ptr<Snapshot> snapshot;
  std::unique_ptr<Allocator> allocator;
  std::vector<DeviceView> devices;
};

// Errors: kUsage for options that do not fit the snapshot.
Result<Recording> MakeRecording(Snapshot snapshot,
                                const std::shared_ptr<const Rules>& rules,
                                const AllocatorRules& allocator,
                                const TableOptions& options);

Result<ResultSet> MakeTables(const Recording& recording,
                             const TableOptions& options);

// Key of an allocation in a composition by `kind`.
std::string KeyOf(const DeviceView& view, const Allocation& a,
                  std::string_view kind, size_t depth);

inline double PercentOf(int64_t part, int64_t whole) {
  return whole == 0
             ? 0.0
             : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace lamina::memory
