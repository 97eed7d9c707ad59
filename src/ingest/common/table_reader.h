// SPDX-License-Identifier: Apache-2.0
//
// Tables of a profiler's database, read by many threads: cut into pieces at row
// ids, each piece one segment (TableReader); tables of (id, text) that all
// threads share (TextTable); and what is told of every database.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/string_pool.h"
#include "ingest/common/database.h"
#include "ingest/common/format.h"
#include "ingest/common/id_table.h"
#include "ingest/common/record_reader.h"
#include "trace/builder.h"

namespace lamina::ingest {

// Pieces of the SQL that is sent to a database.

// The aggregate function through which SQLite hands over rows.
inline constexpr std::string_view kRowFunction = "lamina_row";

// A name of the file in quotes, whatever is in it.
inline std::string QuotedName(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
  return out;
}

// Reads the tables of a database on many threads. A table is cut into pieces
// at row ids; each thread reads pieces through its own connection into its own
// segments, which are joined in the order of the table. What comes out is what
// one pass over the table gives, also when the table is damaged: a piece ends
// where the next one begins or, when that row is not met, at the end of the
// pass, and then the pieces behind it do not count.

class TableReader {
 public:
  using RowFunction = std::function<void(const Row&)>;

  // Pieces are small enough that all threads have work until the end of a
  // table.
  TableReader(const Database& database, const ReadOptions& options,
              trace::TraceBuilder* builder, uint64_t rows_per_piece = 1 << 14);

  int workers() const { return static_cast<int>(workers_.size()); }
  // What belongs to one of the threads.
  const Database& database(int worker) const { return *At(worker).database; }
  Filler& filler(int worker) { return *At(worker).filler; }
  trace::TraceBuilder& builder() { return builder_; }

  // Calls the function that `begin(worker, piece)` gives for every row of a
  // piece. Returns how many pieces count. A null table has no rows.
  size_t ForEach(
      const DatabaseTable* table, Columns columns,
      const std::function<RowFunction(int worker, size_t piece)>& begin);

  // Calls `work(worker, piece)` for so many pieces of anything, to fill the
  // segments of the workers.
  void ForPieces(size_t count,
                 const std::function<void(int worker, size_t piece)>& work);

  // Within a piece: see SegmentJoiner::InTurn.
  bool InTurn(int worker, const std::function<bool()>& known,
              const std::function<void()>& add) {
    return joiner_.InTurn(At(worker).piece, known, add);
  }

  // Values by id: `read` adds those of a row to the table that it gets.
  // `whole`: whether the pass came to the end of the table.
  template <class T, class Read>
  IdTable<T> Index(const DatabaseTable* table, Columns columns, Read read,
                   bool* whole = nullptr);

 private:
  struct Worker {
    const Database* database;
    std::unique_ptr<Database> own;  // of all threads but the first
    std::unique_ptr<Filler> filler;
    size_t piece = 0;
  };

  Worker& At(int worker) { return workers_[static_cast<size_t>(worker)]; }
  const Worker& At(int worker) const {
    return workers_[static_cast<size_t>(worker)];
  }
  // Runs `work`, which says whether its piece is the last, and joins what it
  // filled. Returns how many pieces count.
  size_t Run(size_t count,
             const std::function<bool(Worker&, int, size_t)>& work);

  const ReadOptions& options_;
  trace::TraceBuilder& builder_;
  SegmentJoiner joiner_;
  const uint64_t rows_per_piece_;
  bool whole_ = true;  // the last table that was read
  std::vector<Worker> workers_;
};

template <class T, class Read>
IdTable<T> TableReader::Index(const DatabaseTable* table, Columns columns,
                              Read read, bool* whole) {
  // Many threads ask for parts, so they must not move.
  std::deque<IdTable<T>> parts;
  std::mutex mutex;
  const size_t count =
      ForEach(table, columns, [&](int worker, size_t piece) -> RowFunction {
        const std::lock_guard lock(mutex);
        while (parts.size() <= piece) parts.emplace_back();
        IdTable<T>& part = parts[piece];
        return
            [&read, &part, worker](const Row& row) { read(worker, row, part); };
      });
  if (whole != nullptr) *whole = whole_;
  if (count == 0) return {};
  // Of long tables at most one part is there twice.
  IdTable<T> all = std::move(parts.front());
  if (count > 1) {
    size_t rows = all.size();
    for (size_t i = 1; i < count; ++i) rows += parts[i].size();
    all.Reserve(rows);
  }
  for (size_t i = 1; i < count; ++i) all.Append(std::move(parts[i]));
  all.Finish();
  return all;
}

// A table of (id, text) in a database: read once and shared by all threads.
// Only texts that something refers to become names of the trace: such tables
// also hold what nobody asked for, the environment of the recorded process for
// one.

class TextTable {
 public:
  // `table` may be null: then there are no texts.
  TextTable(TableReader& reader, const DatabaseTable* table,
            std::string_view id_column, std::string_view text_column);

  bool empty() const { return texts_.size() == 0; }

 private:
  friend class TextNames;

  const DatabaseTable* table_ = nullptr;
  std::string id_column_, text_column_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  IdTable<std::string_view> texts_;
  // The pass over the table broke off: more may be found by key.
  bool partial_ = false;
};

// The same texts as names of one thread.
class TextNames {
 public:
  TextNames(const TextTable& table, const Database& database, Filler* filler);

  // Invalid when there is no such text.
  StringId Find(std::optional<int64_t> id);

 private:
  StringId LookUp(int64_t id);

  const TextTable& table_;
  Filler& filler_;
  std::vector<StringId> names_;  // by place in the table
  std::unique_ptr<Rows> lookup_;
  absl::flat_hash_map<int64_t, StringId> found_;
};

// What every reader of a database tells about its file.

// Facts about the file, and whether its end is missing.
void NoteDatabase(const Database& database, std::string_view format,
                  trace::TraceBuilder& builder);

// Says which tables with records nobody reads. `is_known`: a table that is
// read, or of which nothing is missed.
void NoteTablesNotRead(const Database& database,
                       absl::FunctionRef<bool(std::string_view)> is_known,
                       trace::Diagnostics& diagnostics);

// Call after a pass over a table: says so when the table broke off.
void NoteBreak(const DatabaseTable& table, const PassEnd& end,
               trace::Diagnostics& diagnostics);

}  // namespace lamina::ingest
