// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/table_reader.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/parallel.h"
#include "ingest/common/database_trace.h"

namespace lamina::ingest {

TableReader::TableReader(const Database& database, const ReadOptions& options,
                         trace::TraceBuilder* builder, uint64_t rows_per_piece)
    : options_(options),
      builder_(*builder),
      joiner_(builder),
      rows_per_piece_(rows_per_piece) {
  workers_.push_back({&database, nullptr, nullptr});
  for (int i = 1; i < options.threads; ++i) {
    auto again = database.Again();
    // With fewer threads it takes longer; nothing else changes.
    if (!again) break;
    const Database* const connection = again->get();
    workers_.push_back({connection, std::move(*again), nullptr});
  }
  for (Worker& worker : workers_)
    worker.filler = std::make_unique<Filler>(nullptr);
}

size_t TableReader::Run(size_t count,
                        const std::function<bool(Worker&, int, size_t)>& work) {
  joiner_.Restart();
  std::atomic<size_t> next{0};
  const auto threads = std::min(workers_.size(), count);
  RunWorkers(static_cast<int>(threads), [&](int number) {
    Worker& worker = At(number);
    trace::Segment& filled = worker.filler->segment();
    // Pieces that were begun are finished: others may wait for them.
    while (!joiner_.ended() && !options_.Stopped()) {
      worker.piece = next++;
      if (worker.piece >= count) return;
      const bool last = work(worker, number, worker.piece);
      auto segment = joiner_.Take(number, &worker.filler->names());
      std::swap(*segment, filled);
      segment->Seal();
      joiner_.Add(worker.piece, number, std::move(segment), last);
    }
  });
  return joiner_.joined();
}

size_t TableReader::ForEach(
    const DatabaseTable* table, Columns columns,
    const std::function<RowFunction(int worker, size_t piece)>& begin) {
  if (table == nullptr) return 0;
  const Database& main = *workers_.front().database;
  const std::vector<int64_t> cuts = main.Cuts(*table, rows_per_piece_);
  std::vector<PassEnd> ends(cuts.size() + 1);
  const uint64_t most = main.rows_left();
  const size_t count =
      Run(ends.size(), [&](Worker& worker, int number, size_t piece) {
        worker.database->set_rows_left(most);
        RowRange range;
        if (piece > 0) range.first = cuts[piece - 1];
        if (piece < cuts.size()) range.stop = cuts[piece];
        ends[piece] = worker.database->ForEach(table, columns,
                                               begin(number, piece), range);
        return !ends[piece].stopped;
      });
  PassEnd all;
  for (size_t i = 0; i < count; ++i) {
    all.rows += ends[i].rows;
    all.damage = ends[i].damage;
  }
  main.set_rows_left(most - std::min(most, all.rows));
  whole_ = all.damage.empty();
  NoteBreak(*table, all, builder_.diagnostics());
  return count;
}

void TableReader::ForPieces(
    size_t count, const std::function<void(int worker, size_t piece)>& work) {
  Run(count, [&](Worker&, int number, size_t piece) {
    work(number, piece);
    return false;
  });
}

}  // namespace lamina::ingest
