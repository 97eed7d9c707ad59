// SPDX-License-Identifier: Apache-2.0
//
// What the operating system recorded of the threads that launch: calls of its
// library and whether they were on a processor (trace/os_records.h). It says
// what a thread did where no framework and no profiler range does.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/host/cover.h"
#include "trace/trace.h"

namespace lamina::analysis::host {

enum class ProcessorState : uint8_t {
  kRunning,
  kPreempted,  // could run, but no processor was free
  kBlocked,    // waited for something
  kOff,        // one of the two
};

struct ThreadState {
  Interval interval;
  ProcessorState state = ProcessorState::kOff;
  StringId name;
};

struct OsRecords {
  std::vector<ThreadState> states;  // by start, apart from each other
  // In a call of the system, running or preempted: it had something to do.
  Cover active;
};

// Of each of the tracks; empty where nothing of it is recorded. Only the first
// `slices` of the trace are looked at.
std::vector<OsRecords> FindOsRecords(const trace::Trace& trace, uint32_t slices,
                                     const std::vector<trace::TrackId>& tracks);

// Whether a slice is a call of the system.
class OsCalls {
 public:
  explicit OsCalls(const trace::Trace& trace);
  bool Has(const trace::Trace& trace, uint32_t slice) const {
    return trace.slices.kind[slice] == trace::Kind::kOther &&
           trace.slices.category[slice] == category_;
  }

 private:
  int category_ = -1;
};

}  // namespace lamina::analysis::host
