// SPDX-License-Identifier: Apache-2.0
//
// What all threads that read an export share: texts, what codes mean, the
// numbers of processes, and names taken apart.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/interval_set.h"
#include "ingest/common/table_reader.h"

namespace lamina::ingest::nsys {

// Names as Nsight Systems writes them, taken apart.

// "cudaLaunchKernel_ptsz_v7000" -> "cudaLaunchKernel".
std::string_view PlainApiName(std::string_view name);
// "cu" and a capital letter.
bool IsDriverCall(std::string_view name);

// "HtoD" of an entry of ENUM_CUDA_MEMCPY_OPER ("CUDA_MEMCPY_KIND_HTOD"); the
// entry itself when it is not known.
std::string CopyDirection(std::string_view entry);

// What the scheduler of the operating system wrote of threads.

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

// What all threads that read an export share: texts, what codes mean, the
// numbers of processes, names of calls.

// A global id is a process in the high bits and a thread in the low 24.
inline constexpr int64_t kThreadMask = 0xFFFFFF;
inline constexpr int kProcessShift = 24;

// Rows of a database have no place in its file.
inline constexpr uint64_t kNoOffset = trace::Diagnostics::kNoOffset;

struct ProcessFacts {
  int64_t index = 0;
  std::string pid;
};

// A call that recorded an event in a stream, for those that wait for it.
struct EventRecord {
  int64_t process = 0;  // a global id without its thread
  int64_t event = 0;
  int64_t sync = 0;  // the number that it shares with its waits; 0: none
  int64_t correlation = 0;
  int64_t stream = trace::kNoInt;
};

class ExportFacts {
 public:
  explicit ExportFacts(TableReader* reader);

  // Call before RecordOf(), when no thread reads.
  void SetEventRecords(std::vector<EventRecord> records);
  // The record that a waiting call of the correlation waits for: by the number
  // that both have, else the last one of the event before the call. Null: it is
  // not recorded.
  const EventRecord* RecordOf(const EventRecord& wait) const;

  // Numbered in the order of the records that name them. Nothing when what the
  // thread reads will be dropped. `key`: a global id without its thread.
  std::optional<ProcessFacts> ProcessOf(int worker, int64_t key);
  // Call when no thread reads.
  bool HasProcess(int64_t key) const { return processes_.contains(key); }

  // Numbers of texts that all threads know, in no order.
  uint32_t ShareName(std::string_view text);
  // Call when no thread adds one.
  std::string_view SharedName(uint32_t number) const {
    return shared_[StringId(number)];
  }
  size_t shared_names() const { return shared_.size(); }

  const TextTable strings;
  // Whether device rows name their process, so that the ids of two processes
  // can be told apart.
  bool by_process = true;
  bool has_config = false;  // kernels have a grid
  std::map<int64_t, std::string> memory_kinds;
  std::map<int64_t, std::string> directions;  // of copies
  std::map<int64_t, std::string> syncs;
  std::map<int64_t, std::string> overheads;
  std::map<int64_t, OsState> off_states;  // of threads that leave a processor
  std::map<std::pair<int64_t, int64_t>, std::string> metrics;
  std::set<int64_t> threads;  // global ids that records name; set after them

 private:
  std::map<int64_t, std::string> Entries(std::string_view table,
                                         std::string_view column);
  void ReadMetrics();

  TableReader& reader_;
  const Database& database_;
  std::map<int64_t, ProcessFacts> processes_;  // by global id
  std::map<std::string, int> pids_;            // how often each was given
  std::mutex shared_mutex_;
  StringPool shared_;
  std::vector<EventRecord> event_records_;  // by process, event, correlation
  std::map<std::pair<int64_t, int64_t>, EventRecord> records_by_sync_;
};

}  // namespace lamina::ingest::nsys
