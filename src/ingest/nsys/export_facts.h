// SPDX-License-Identifier: Apache-2.0
//
// What all threads that read an export share: texts, what codes mean, the
// numbers of processes, names of calls.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ingest/common/table_reader.h"
#include "ingest/common/text_table.h"
#include "ingest/nsys/os_rows.h"

namespace lamina::ingest::nsys {

// A global id is a process in the high bits and a thread in the low 24.
inline constexpr int64_t kThreadMask = 0xFFFFFF;
inline constexpr int kProcessShift = 24;

// Rows of a database have no place in its file.
inline constexpr uint64_t kNoOffset = trace::Diagnostics::kNoOffset;

struct ProcessFacts {
  int64_t index = 0;
  std::string pid;
};

class ExportFacts {
 public:
  explicit ExportFacts(TableReader* reader);

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
};

}  // namespace lamina::ingest::nsys
