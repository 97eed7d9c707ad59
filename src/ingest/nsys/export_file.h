// SPDX-License-Identifier: Apache-2.0
//
// The tables of an export, one pass each. Rows become records on many threads
// (export_thread.h).
#pragma once

#include <deque>
#include <mutex>
#include <string_view>
#include <vector>

#include "ingest/common/table_reader.h"
#include "ingest/nsys/export_facts.h"
#include "ingest/nsys/export_thread.h"

namespace lamina::ingest::nsys {

class ExportFile {
 public:
  explicit ExportFile(TableReader* reader);

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
  void ReadOsCalls();     // OSRT_API
  // SCHED_EVENTS of threads that anything else names: call behind all others.
  void ReadThreadStates();
  void ReadTrackNames();
  // Ranges without an end; call when everything else is read.
  void CloseOpenRanges();
  void NoteFacts();

 private:
  const DatabaseTable* Table(std::string_view name) const {
    return database_.FindVersion(name);
  }
  ExportThread& Thread(int worker) {
    return threads_[static_cast<size_t>(worker)];
  }
  trace::Diagnostics& diagnostics() { return reader_.builder().diagnostics(); }

  // Calls a function of the thread for every row, which is one record.
  void ForRows(const DatabaseTable* table, Columns columns,
               void (ExportThread::*read)(const Row&));
  // What the function collects of all rows, in their order.
  template <class T>
  std::vector<T> Collect(const DatabaseTable* table, Columns columns,
                         void (ExportThread::*read)(const Row&,
                                                    std::vector<T>&));
  // From the first start of a span that was read to the last end.
  Interval Recorded() const;
  // Global ids of the threads that records named.
  std::set<int64_t> KnownThreads() const;
  // So many pieces of the table that was read count.
  void EndTable(size_t count);
  void NoteSource();
  void NoteMissing();
  void NoteUnread();

  TableReader& reader_;
  const Database& database_;
  ExportFacts facts_;
  std::deque<ExportThread> threads_;
  std::vector<OpenRange> open_ranges_;
};

template <class T>
std::vector<T> ExportFile::Collect(
    const DatabaseTable* table, Columns columns,
    void (ExportThread::*read)(const Row&, std::vector<T>&)) {
  // A deque: parts that threads fill must not move.
  std::deque<std::vector<T>> parts;
  std::mutex mutex;
  const size_t count = reader_.ForEach(
      table, columns,
      [&](int worker, size_t piece) -> TableReader::RowFunction {
        const std::lock_guard lock(mutex);
        while (parts.size() <= piece) parts.emplace_back();
        Thread(worker).BeginPiece(piece);
        return [&thread = Thread(worker), &part = parts[piece],
                read](const Row& row) { (thread.*read)(row, part); };
      });
  EndTable(count);
  std::vector<T> all;
  for (size_t i = 0; i < count; ++i)
    all.insert(all.end(), parts[i].begin(), parts[i].end());
  return all;
}

}  // namespace lamina::ingest::nsys
