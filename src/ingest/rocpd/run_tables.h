// SPDX-License-Identifier: Apache-2.0
//
// The tables of one run in a file: they carry the same suffix, and ids hold
// among them only.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <string>

#include "ingest/common/database.h"
#include "ingest/common/database_trace.h"
#include "ingest/common/filler.h"
#include "ingest/common/id_table.h"
#include "ingest/common/rocm.h"
#include "ingest/common/text_table.h"

namespace lamina::ingest::rocpd {

// Suffixes of the runs in a database, sorted; "" for tables without.
std::vector<std::string> FindRuns(const Database& database);

class RunTables {
 public:
  // `processes`: how many processes earlier runs had; counted on.
  RunTables(const Database& database, std::string suffix, Filler* filler,
            uint32_t* processes);

  void ReadRegions();
  void ReadDispatches();
  void ReadCopies();
  void ReadAllocations();
  void ReadNames();  // of threads
  void NoteUnread();

 private:
  struct Process {
    uint32_t index = 0;
    StringId pid;
  };
  struct Event {
    StringId category;
    int64_t stack = 0;
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
    StringId name;
    trace::Kind kind = trace::Kind::kKernel;
    int64_t registers = trace::kNoInt;
  };

  const DatabaseTable* Table(std::string_view name) const {
    return database_.Find("rocpd_" + std::string(name) + suffix_);
  }
  template <class Read>
  void ForRows(std::string_view table,
               std::initializer_list<std::string_view> columns, Read read);

  void ReadProcesses();
  void ReadAgents();
  void ReadEvents();
  void ReadSymbols();
  void ReadTimes();
  // Columns of every record: see kCommon in the source.
  rocm::Span SpanOf(const Rows& rows) const;
  Place PlaceOf(const Rows& rows) const;
  const Process& ProcessOf(int64_t row);
  rocm::Thread ThreadOf(const Place& place);
  Agent AgentOf(std::optional<int64_t> row) const;
  Event EventOf(std::optional<int64_t> row) const;

  const Database& database_;
  std::string suffix_;
  Filler& filler_;
  uint32_t& processes_;
  rocm::Writer writer_;
  TextTable strings_;
  absl::flat_hash_map<int64_t, Process> process_rows_;
  absl::flat_hash_map<int64_t, int64_t> thread_ids_;  // row -> system id
  absl::flat_hash_map<int64_t, Agent> agents_;
  absl::flat_hash_map<int64_t, Symbol> symbols_;
  IdTable<Event> events_;
  IdTable<Place> tracks_;
  IdTable<int64_t> times_;  // layout B
};

template <class Read>
void RunTables::ForRows(std::string_view name,
                        std::initializer_list<std::string_view> columns,
                        Read read) {
  const DatabaseTable* table = Table(name);
  Rows rows = database_.Scan(table, columns);
  while (rows.Next()) read(rows);
  if (table != nullptr) NoteBreak(*table, rows, filler_);
}

}  // namespace lamina::ingest::rocpd
