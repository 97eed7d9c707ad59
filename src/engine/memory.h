// SPDX-License-Identifier: Apache-2.0
//
// `lamina memory` as functions: what a file tells about memory, whatever kind
// of file it is.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/timer.h"
#include "lamina/result.h"
#include "memory/tables.h"

namespace lamina::trace {
struct Trace;
}

namespace lamina::engine {

struct MemoryOptions {
  memory::TableOptions tables;
  std::string device;  // a number, or "cpu" in a trace; empty: all GPUs
  bool salvage = false;
  std::string trace;  // of the same run as a snapshot; empty: none
  std::string rules_dir;
  int threads = 1;
  StageTimes* times = nullptr;
  std::function<void(uint64_t done, uint64_t total)> progress;
  // Told of each trace that was read (OpenOptions::read).
  std::function<void(const std::string& path, const trace::Trace& trace)> read;
};

// Whether a file is a memory snapshot of PyTorch, by its first bytes.
bool IsMemorySnapshot(const std::string& path);

// Reads a snapshot and finds out about its devices.
Result<memory::Recording> OpenRecording(const std::string& path,
                                        const MemoryOptions& options);

// Snapshots that tables were made of, for a page.
using Recordings = std::vector<memory::Recording>;

// What differs between two snapshots at the moments that are looked at.
Result<ResultSet> DiffMemory(const std::string& a, const std::string& b,
                             const MemoryOptions& options,
                             Recordings* keep = nullptr);

// Tables of one file: a snapshot, or a trace with memory events.
Result<ResultSet> MakeMemoryTables(const std::string& path,
                                   const MemoryOptions& options,
                                   Recordings* keep = nullptr);

}  // namespace lamina::engine
