// SPDX-License-Identifier: Apache-2.0
//
// The CSV files of a run: which there are and their columns, their rows one
// file after the other, agents, and counters in long form.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/csv_rows.h"
#include "trace/builder.h"
#include "trace/diagnostics.h"
#include "trace/segment.h"

namespace lamina::ingest::rocprof_csv {

// The CSV files of rocprof: which there are, and the columns of each. Files are
// told apart by their header, since users rename them; columns by name, since
// their order and number differ between versions.

enum class TableKind : uint8_t {
  kNone,
  kKernels,     // rocprofv3 kernel_trace
  kCounters,    // counter_collection: a row per dispatch and counter
  kCalls,       // hip_api_trace, hsa_api_trace, rccl_api_trace; markers, too
  kCopies,      // memory_copy_trace
  kAgents,      // agent_info
  kOldKernels,  // results.csv of rocprof v1 and v2
  kAscend,      // kernel_details.csv of torch_npu, op_summary.csv of msprof
};

// By the header row.
TableKind KindOf(const std::vector<std::string>& header);

// The position of the first of some column names; -1 when there is none.
int Column(const std::vector<std::string>& header,
           std::initializer_list<std::string_view> names);

// "4242_kernel_trace.csv" -> 4242; 0 when the name begins with no number.
int64_t PidOfName(std::string_view path);

// "Agent 2", "GPU 0" or "2" -> the number; kNoInt otherwise.
int64_t AgentNumber(std::string_view text);

// The CSV files of a run: what each is, and their rows one file after the
// other.

// Adds what CsvRows found wrong in a chunk.
void AddRowDamage(const CsvRows& rows, const Chunk& chunk,
                  trace::Diagnostics& diagnostics);

class Sheet {
 public:
  explicit Sheet(std::unique_ptr<ByteSource> source)
      : cutter_(std::move(source)), pid_(PidOfName(cutter_.source().name())) {}

  // Reads the header.
  Status Open();
  // The next chunk of rows behind it; false at the end.
  Result<bool> Next(Chunk& chunk);

  TableKind kind() const { return kind_; }
  // The number in the name of the file.
  int64_t pid() const { return pid_; }
  // Number of its process among those of the run.
  uint32_t process() const { return process_; }
  void SetProcess(uint32_t process) { process_ = process; }
  // Of the unpacked file, as far as it was read.
  uint64_t bytes() const {
    return kind_ == TableKind::kNone ? header_bytes_ : cutter_.offset();
  }
  const ByteSource& source() const { return cutter_.source(); }
  // Column by the first of some names; -1: there is none.
  int Find(std::initializer_list<std::string_view> names) const {
    return Column(header_, names);
  }
  // What is wrong with the file; call at its end.
  void AddDamage(trace::Diagnostics& diagnostics) const;

 private:
  CsvCutter cutter_;
  Chunk first_;  // the rest of the chunk that has the header
  std::vector<std::string> header_;
  uint64_t header_bytes_ = 0;
  TableKind kind_ = TableKind::kNone;
  int64_t pid_ = 0;
  uint32_t process_ = 0;
};

using Sheets = std::vector<std::unique_ptr<Sheet>>;

// The rows of all sheets with events as one list of chunks; `array` of a chunk
// is the number of its sheet.
class SheetStream {
 public:
  explicit SheetStream(const Sheets* sheets) : sheets_(*sheets) {}

  Result<bool> Next(Chunk& chunk);
  const trace::Diagnostics& diagnostics() const { return diagnostics_; }
  // For progress.
  uint64_t stored_position() const;
  uint64_t stored_size() const;

 private:
  const Sheets& sheets_;
  size_t sheet_ = 0;
  bool any_ = false;  // rows of that sheet
  uint64_t sequence_ = 0;
  trace::Diagnostics diagnostics_;
};

// The CPUs and GPUs of a run, by number of their node.

struct Agent {
  bool gpu = false;
  int64_t number = trace::kNoInt;  // of the GPU
  trace::DeviceInfo device;
};

class Agents {
 public:
  // Adds the rows of a sheet of agents, counted as events of `segment`.
  Status Read(Sheet& sheet, trace::Segment& segment);
  // Numbers the GPUs in the order of their nodes; returns what is known of
  // them. Call when all sheets are read.
  std::vector<trace::DeviceInfo> Number();

  // "Agent 2", "GPU 0"; null when it is unknown.
  const Agent* Find(std::string_view text) const;
  int64_t DeviceOf(std::string_view text) const;

 private:
  std::map<int64_t, Agent> agents_;  // by node
};

// counter_collection.csv: one row per dispatch and counter, so that its rows
// are no dispatches. They are read before all others and joined by dispatch:
// counters of a kernel_trace.csv of the same process go to its kernels; without
// one the dispatches themselves come from here.

struct CounterValue {
  std::string name;
  double value = 0;
};

class CounterTable {
 public:
  // Reads a sheet. With `emit` its dispatches become kernels of the segment.
  Status Read(Sheet& sheet, const Agents& agents, bool emit,
              trace::LocalNames& names, trace::Segment& segment);

  // Of a dispatch of a kernel sheet; null: none.
  const std::vector<CounterValue>* Find(uint32_t process,
                                        int64_t dispatch) const;
  bool empty() const { return counters_.empty(); }

 private:
  std::map<std::pair<uint32_t, int64_t>, std::vector<CounterValue>> counters_;
};

// Adds rows of event_counters for the event that is added next.
void AddCounters(const std::vector<CounterValue>& values,
                 trace::LocalNames& names, trace::Segment& segment);

}  // namespace lamina::ingest::rocprof_csv
