// SPDX-License-Identifier: Apache-2.0
//
// The tables of an export, one pass each: their rows become records on many
// threads. A thread has names and caches of its own, makes processes, threads
// and lanes tracks, and correlation ids unique over processes.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ingest/common/pytorch.h"
#include "ingest/common/table_reader.h"
#include "ingest/nsys/export_facts.h"

namespace lamina::ingest::nsys {

// CUDA calls as the recorder wrote them, and where their times disagree.

struct CallRow {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t global_tid = 0;
  int64_t correlation = 0;
  uint32_t name = 0;  // ExportFacts::SharedName
};

// Calls of a thread are inside each other or apart. Where clocks disagree, the
// earlier of two that overlap otherwise is cut off; returns how many.
uint64_t ClipOverlaps(std::vector<CallRow>& rows);

// An NVTX range without an end.
struct OpenRange {
  int64_t start_ns = 0;
  int64_t global_tid = 0;
  std::string text;
};

class ExportThread {
 public:
  ExportThread(ExportFacts* facts, TableReader* reader, int worker);

  void Range(const Row& row, std::vector<OpenRange>& open);
  void Call(const Row& row, std::vector<CallRow>& calls);
  void GraphNode(const Row& row);
  void Overhead(const Row& row);
  void Memory(const Row& row);
  void Kernel(const Row& row);
  void Copy(const Row& row);
  void Fill(const Row& row);
  void GraphRun(const Row& row);
  void Recorded(const Row& row, std::vector<EventRecord>& records);
  void Sync(const Row& row);
  void Metric(const Row& row);
  void OsCall(const Row& row, std::vector<CallRow>& calls);
  void Sched(const Row& row, std::vector<SchedRow>& rows);
  void ThreadName(const Row& row);
  void ProcessName(const Row& row);
  // Of rows that were collected.
  void AddCall(const CallRow& call);
  void AddOsCall(const CallRow& call);
  void AddState(const StateRow& state);
  void CloseRange(const OpenRange& range, int64_t last_ns);

  // The record of a row is done.
  void Next() { filler_.Next(); }

  // Rows of a piece of a table follow, and after the table how many of its
  // pieces count. Of a damaged table others may have been read by then, by
  // whoever was quick: what they saw must leave no trace.
  void BeginPiece(size_t piece);
  void EndTable(size_t count);

  // From the first start of a span to the last end; nothing before the first
  // one.
  std::optional<Interval> recorded() const { return seen_.recorded; }
  // Global ids of the threads that records named.
  const std::set<int64_t>& threads() const { return seen_.threads; }
  // Indexes of the processes that used a device.
  const std::set<int64_t>& device_users() const { return seen_.device_users; }

 private:
  struct Process {
    int64_t index = 0;
    StringId pid;
  };
  struct Api {
    StringId name;
    bool driver = false;
  };
  // What rows of all device tables begin with.
  struct Work {
    int64_t start_ns = 0;
    int64_t dur_ns = 0;
    trace::TrackId lane;
    trace::DeviceArgs args;
  };

  // What rows have shown.
  struct Seen {
    std::optional<Interval> recorded;
    std::set<int64_t> threads;
    std::set<int64_t> device_users;

    void Add(const Interval& span);
    void Add(const Seen& other);
  };
  // A track, and the piece in which its thread or process was last noted.
  struct KnownTrack {
    trace::TrackId id;
    uint64_t noted = 0;
  };

  Seen& Now() { return pieces_.empty() ? seen_ : pieces_.back().second; }
  void AddRange(const Row& row, std::vector<OpenRange>& open);
  Process ProcessOf(std::optional<int64_t> global_id);
  trace::TrackId Thread(int64_t global_tid);
  trace::TrackId StateTrack(int64_t global_tid);
  trace::TrackId Lane(const Process& process, int64_t device, int64_t stream);
  int64_t Correlation(const Process& process, std::optional<int64_t> id) const;
  // A name column: an id of StringIds or, in some exports, the text itself.
  StringId NameOf(const Row& row, int column);
  bool Usable(int64_t start_ns, int64_t end_ns);
  bool WorkOf(const Row& row, Work& work);
  void AddWork(const Work& work, StringId name, trace::Kind kind,
               std::string_view category);
  void NameTrack(trace::TrackId track, trace::TrackFact::What what,
                 StringId text);
  uint32_t LaunchConfigOf(const Row& row, int first);
  StringId CopyName(int64_t kind, std::optional<int64_t> from,
                    std::optional<int64_t> to);
  uint32_t SharedName(StringId name);

  ExportFacts& facts_;
  TableReader& reader_;
  const int worker_;
  Filler& filler_;
  trace::LocalNames& names_;
  TextNames strings_;
  RangeWriter ranges_;
  absl::flat_hash_map<int64_t, Process> processes_;
  absl::flat_hash_map<int64_t, KnownTrack> threads_;
  absl::flat_hash_map<int64_t, trace::TrackId> state_tracks_;
  absl::flat_hash_map<std::tuple<int64_t, int64_t, int64_t>, KnownTrack> lanes_;
  absl::flat_hash_map<std::tuple<int64_t, int64_t, int64_t>, StringId> copies_;
  std::vector<uint32_t> shared_;  // numbers of names in the facts
  std::vector<Api> apis_;         // by shared number
  Seen seen_;                     // in pieces that count
  std::vector<std::pair<size_t, Seen>> pieces_;  // of the table
  uint64_t stamp_ = 1;                           // of the piece
};

// The tables of an export, one pass each. Rows become records on many threads
// (ExportThread).

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
  void ReadSyncs();       // CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, _CUDA_EVENT
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
