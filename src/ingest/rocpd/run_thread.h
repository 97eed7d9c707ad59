// SPDX-License-Identifier: Apache-2.0
//
// One thread that makes the records of a run's tables: names and caches of its
// own.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <vector>

#include "ingest/common/rocm.h"
#include "ingest/rocpd/run_tables.h"

namespace lamina::ingest::rocpd {

// The first columns of a pass over records, in both layouts: A has times and
// places in the row, B refers to tables of them.
#define LAMINA_ROCPD_COMMON                                                   \
  "start", "end", "start_id", "end_id", "track_id", "pid", "tid", "agent_id", \
      "queue_id", "stream_id", "event_id"

class RunThread {
 public:
  RunThread(RunTables* run, TableReader* reader, int worker);

  // Rows of LAMINA_ROCPD_COMMON and, behind them:
  void Region(const Row& row);      // name_id
  void Dispatch(const Row& row);    // kernel, sizes of workgroup and grid, LDS
  void Copy(const Row& row);        // name_id, size, agents from and to
  void Allocation(const Row& row);  // type, address, size, level
  // process, thread, name
  void ThreadName(const Row& row);

 private:
  struct LocalProcess {
    uint32_t index = 0;
    StringId pid;
  };

  rocm::Span SpanOf(const Row& row) const;
  Place PlaceOf(const Row& row) const;
  LocalProcess ProcessOf(int64_t row);
  rocm::Thread ThreadOf(const Place& place);
  // The correlation of work with its call; kNoInt: nothing says which.
  int64_t LaunchOf(uint32_t process, const Event& event);
  StringId SymbolName(size_t place);
  // Hardware counters of the kernel that is being added.
  void Counters(int64_t event);

  RunTables& run_;
  const int worker_;
  Filler& filler_;
  rocm::Writer writer_;
  TextNames strings_;
  absl::flat_hash_map<int64_t, LocalProcess> processes_;
  std::vector<StringId> symbols_;   // names, by place in the table
  std::vector<StringId> counters_;  // the same
};

}  // namespace lamina::ingest::rocpd
