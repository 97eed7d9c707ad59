// SPDX-License-Identifier: Apache-2.0
//
// The tables of one run in a file: they carry the same suffix, and ids hold
// among them only.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <atomic>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ingest/common/database.h"
#include "ingest/common/id_table.h"
#include "ingest/common/rocm.h"
#include "ingest/common/table_reader.h"
#include "trace/trace.h"

namespace lamina::ingest::rocpd {

// Suffixes of the runs in a database, sorted; "" for tables without.
std::vector<std::string> FindRuns(const Database& database);

struct Process {
  uint32_t index = 0;
  std::string pid;
};
struct Event {
  int64_t category = trace::kNoInt;  // row of the strings
  int64_t stack = 0;
  int64_t parent = 0;  // the stack around it
  int64_t correlation = 0;
};
struct Agent {
  bool gpu = false;
  int64_t number = trace::kNoInt;
};
// Row ids of the info tables, in both layouts.
struct Place {
  int64_t pid = trace::kNoInt;
  int64_t tid = trace::kNoInt;
  int64_t agent = trace::kNoInt;
  int64_t queue = trace::kNoInt;
  int64_t stream = trace::kNoInt;
};
struct Symbol {
  std::string name;
  trace::Kind kind = trace::Kind::kKernel;
  int64_t registers = trace::kNoInt;
};

// A hardware counter of an event; of one counter there may be a value for each
// of its instances.
struct CounterValue {
  int64_t event = 0;
  int64_t counter = 0;  // row of the counters
  double value = 0;
};

class RunThread;

// What records refer to, read first and shared by all threads, and the passes
// over the records.
class RunTables {
 public:
  // `processes`: how many processes earlier runs had; counted on.
  RunTables(TableReader* reader, std::string suffix, uint32_t* processes);
  ~RunTables();

  void ReadRegions();
  void ReadDispatches();
  void ReadCopies();
  void ReadAllocations();
  void ReadNames();  // of threads
  // Names of the tables of the run that are read, or of which nothing is
  // missed. Call behind the passes.
  void AddKnown(std::set<std::string>& names) const;

  // A process that the run does not describe gets the next number. Nothing
  // when what the thread reads will be dropped.
  std::optional<Process> ProcessOf(int worker, int64_t row);
  // Whether a record or the table of processes has named it.
  bool Knows(int64_t process) const { return processes_.contains(process); }
  const absl::flat_hash_map<int64_t, int64_t>& thread_ids() const {
    return thread_ids_;
  }
  Agent AgentOf(std::optional<int64_t> row) const;
  Event EventOf(std::optional<int64_t> row) const;
  // The stack of the call that launched a piece of device work; 0: none is
  // known. ROCm 7 leaves out the correlation: there the work has the stack of
  // its call or, where that call is not recorded, of the call around it.
  int64_t LaunchStack(const Event& event) const;
  const IdTable<Symbol>& symbols() const { return symbols_; }
  const IdTable<std::string>& counters() const { return counters_; }
  // Calls f(value) for the counters of an event, which are read then.
  template <class F>
  void TakeCounters(int64_t event, const F& f) {
    size_t taken = 0;
    for (size_t i = counter_values_.Place(event);
         i < counter_values_.size() && counter_values_.at(i).event == event;
         ++i, ++taken)
      f(counter_values_.at(i));
    if (taken > 0) counters_taken_ += taken;
  }
  const IdTable<Place>& tracks() const { return tracks_; }
  const IdTable<int64_t>& times() const { return times_; }
  const TextTable& strings() const { return strings_; }

 private:
  const DatabaseTable* Table(std::string_view name) const {
    return database_.Find(Name(name));
  }
  std::string Name(std::string_view table) const {
    return "rocpd_" + std::string(table) + suffix_;
  }
  // Calls a function of the thread for every row.
  void ForRows(std::string_view table, Columns columns,
               void (RunThread::*read)(const Row&));
  // A small table, read by the first thread alone.
  void ForFew(std::string_view table, Columns columns,
              const TableReader::RowFunction& read);

  void ReadProcesses();
  void ReadAgents();
  void ReadEvents();
  void ReadCallStacks();
  void ReadSymbols();
  void ReadCounters();
  void ReadTimes();

  TableReader& reader_;
  const Database& database_;
  std::string suffix_;
  uint32_t& process_count_;
  TextTable strings_;
  absl::flat_hash_map<int64_t, Process> processes_;
  absl::flat_hash_map<int64_t, int64_t> thread_ids_;  // row -> system id
  absl::flat_hash_map<int64_t, Agent> agents_;
  IdTable<Symbol> symbols_;
  IdTable<std::string> counters_;         // names
  IdTable<CounterValue> counter_values_;  // by event
  std::atomic<size_t> counters_taken_ = 0;
  IdTable<Event> events_;
  absl::flat_hash_set<int64_t> call_stacks_;  // only where they are asked for
  IdTable<Place> tracks_;
  IdTable<int64_t> times_;  // layout B
  std::deque<RunThread> threads_;
};

// One thread that makes the records of a run's tables: names and caches of its
// own.

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
