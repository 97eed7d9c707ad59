// SPDX-License-Identifier: Apache-2.0
//
// What the scheduler of the operating system wrote of threads.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/interval_set.h"

namespace lamina::ingest::nsys {

enum class OsState : uint8_t {
  kRunning,
  kPreempted,
  kBlocked,
  kUninterruptible,
  kStopped,
  kOff,   // left the processor; nothing says why
  kGone,  // has ended
};
// As in trace/os_records.h.
std::string_view OsStateName(OsState state);
// What a thread is in that left its processor in this state, by the name of
// an entry of ENUM_SAMPLING_THREAD_STATE.
OsState OffState(std::string_view name);

// A thread came onto a processor (kRunning) or left it.
struct SchedRow {
  int64_t time_ns = 0;
  int64_t global_tid = 0;
  OsState state = OsState::kOff;
};

struct StateRow {
  Interval interval;
  int64_t global_tid = 0;
  OsState state = OsState::kOff;
};

// What lies between the rows, by thread and time, within `recorded`. A state
// lasts to the next row of its thread, the last one to the end. Two rows that
// both say "came" or both "left" leave what lies between them open: counted.
std::vector<StateRow> StatesOf(std::vector<SchedRow> rows,
                               const Interval& recorded, uint64_t& unpaired);

}  // namespace lamina::ingest::nsys
