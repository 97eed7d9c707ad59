// SPDX-License-Identifier: Apache-2.0
//
// What all tables of an export share: processes, threads and lanes as tracks,
// names, correlation ids that are unique over processes.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ingest/common/database.h"
#include "ingest/common/database_trace.h"
#include "ingest/common/filler.h"
#include "ingest/common/text_table.h"

namespace lamina::ingest::nsys {

// Rows of a database have no place in its file.
inline constexpr uint64_t kNoOffset = trace::Diagnostics::kNoOffset;

class ExportFile {
 public:
  ExportFile(const Database& database, Filler* filler);

  // Host side first: an op that begins together with its launch is around it.
  void ReadRanges();      // NVTX_EVENTS
  void ReadCalls();       // CUPTI_ACTIVITY_KIND_RUNTIME
  void ReadOverhead();    // CUPTI_ACTIVITY_KIND_OVERHEAD
  void ReadGraphNodes();  // CUDA_GRAPH_NODE_EVENTS
  void ReadMemory();      // CUDA_GPU_MEMORY_USAGE_EVENTS
  void ReadKernels();     // CUPTI_ACTIVITY_KIND_KERNEL
  void ReadCopies();      // CUPTI_ACTIVITY_KIND_MEMCPY
  void ReadFills();       // CUPTI_ACTIVITY_KIND_MEMSET
  void ReadGraphRuns();   // CUPTI_ACTIVITY_KIND_GRAPH_TRACE
  void ReadSyncs();       // CUPTI_ACTIVITY_KIND_SYNCHRONIZATION
  void ReadMetrics();     // GPU_METRICS
  void ReadTrackNames();
  // Ranges without an end; call when everything else is read.
  void CloseOpenRanges();
  void NoteFacts();

 private:
  struct Process {
    int64_t index = 0;
    StringId pid;
    bool on_device = false;
  };
  struct OpenRange {
    int64_t start_ns;
    StringId name;
    trace::TrackId track;
  };

  // One pass over a table: `read` gets every row. Says so when the table
  // breaks off.
  template <class Read>
  void Scan(const DatabaseTable* table,
            std::initializer_list<std::string_view> columns, Read read);
  // The same, each row being one record of the input.
  template <class Read>
  void ForRows(const DatabaseTable* table,
               std::initializer_list<std::string_view> columns, Read read) {
    Scan(table, columns, [&](const Rows& rows) {
      read(rows);
      filler_.Next();
    });
  }
  const DatabaseTable* Table(std::string_view name) const {
    return database_.Find(name);
  }

  Process& ProcessOf(std::optional<int64_t> global_id);
  trace::TrackId Thread(std::optional<int64_t> global_tid);
  trace::TrackId Lane(Process& process, int64_t device, int64_t stream);
  int64_t Correlation(const Process& process, std::optional<int64_t> id) const;
  // A name column: an id of StringIds or, in some exports, the text itself.
  StringId NameOf(const Rows& rows, int column);
  std::map<int64_t, std::string> Entries(std::string_view table,
                                         std::string_view column);
  bool Usable(int64_t start_ns, int64_t end_ns);
  trace::Diagnostics& diagnostics() { return filler_.segment().diagnostics; }
  void NoteSource();
  void NoteMissing();
  void NoteUnread();

  const Database& database_;
  Filler& filler_;
  TextTable strings_;
  // Whether device rows name their process, so that the ids of two processes
  // can be told apart.
  bool by_process_ = true;
  std::map<int64_t, Process> processes_;  // by global id
  std::map<std::string, int> pids_;       // how often each was given
  absl::flat_hash_map<int64_t, trace::TrackId> threads_;
  std::map<std::tuple<int64_t, int64_t, int64_t>, trace::TrackId> lanes_;
  std::map<int64_t, std::string> memory_kinds_;
  std::vector<OpenRange> open_ranges_;
  int64_t last_ns_ = 0;
  bool any_time_ = false;
};

template <class Read>
void ExportFile::Scan(const DatabaseTable* table,
                      std::initializer_list<std::string_view> columns,
                      Read read) {
  Rows rows = database_.Scan(table, columns);
  while (rows.Next()) read(rows);
  if (table != nullptr) NoteBreak(*table, rows, filler_);
}

}  // namespace lamina::ingest::nsys
