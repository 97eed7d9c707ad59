// SPDX-License-Identifier: Apache-2.0

#include "ingest/common/table_reader.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/parallel.h"

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

TextTable::TextTable(TableReader& reader, const DatabaseTable* table,
                     std::string_view id_column, std::string_view text_column)
    : table_(table), id_column_(id_column), text_column_(text_column) {
  if (table == nullptr || !table->Has(id_column) || !table->Has(text_column))
    return;
  for (int worker = 0; worker < reader.workers(); ++worker)
    arenas_.push_back(std::make_unique<Arena>());
  bool whole = true;
  texts_ = reader.Index<std::string_view>(
      table, {id_column, text_column},
      [&](int worker, const Row& row, IdTable<std::string_view>& texts) {
        const auto id = row.Int(0);
        const auto text = row.Text(1);
        if (id && text)
          texts.Add(*id, arenas_[static_cast<size_t>(worker)]->Copy(*text));
      },
      &whole);
  partial_ = !whole && table->primary_key == id_column;
}

TextNames::TextNames(const TextTable& table, const Database& database,
                     Filler* filler)
    : table_(table), filler_(*filler), names_(table.texts_.size()) {
  if (table.partial_) {
    lookup_ =
        database.Lookup(table.table_, {table.text_column_}, table.id_column_);
  }
}

StringId TextNames::Find(std::optional<int64_t> id) {
  if (!id) return {};
  const size_t place = table_.texts_.Place(*id);
  if (place == names_.size()) return lookup_ ? LookUp(*id) : StringId();
  StringId& name = names_[place];
  if (!name.valid()) name = filler_.Intern(table_.texts_.at(place));
  return name;
}

StringId TextNames::LookUp(int64_t id) {
  const auto [it, is_new] = found_.try_emplace(id);
  if (!is_new) return it->second;
  lookup_->Restart(id);
  if (lookup_->Next()) {
    if (const auto text = lookup_->Text(0)) it->second = filler_.Intern(*text);
  }
  return it->second;
}

namespace {

constexpr size_t kShownName = 64;

}  // namespace

void NoteDatabase(const Database& database, std::string_view format,
                  trace::TraceBuilder& builder) {
  trace::Info& info = builder.info();
  info.format = format;
  info.file = database.name();
  info.file_bytes = database.file_bytes();
  info.input_bytes = database.file_bytes();
  info.plain = false;
  if (!database.log().empty()) {
    builder.diagnostics().Add(
        trace::Effect::kInfo, "database_log",
        "The database has a log beside it (" + database.log() +
            "), as of a program that did not close it: the log was applied to "
            "a copy, which was read.");
  }
  if (database.missing_bytes() > 0) {
    builder.diagnostics().Add(
        trace::Effect::kLost, "file_cut_off",
        "The database ends before the size that its header gives: copy or "
        "export it again.",
        database.file_bytes(), 1, database.missing_bytes());
  }
  if (database.another_at() > 0) {
    builder.diagnostics().Add(
        trace::Effect::kLost, "another_database",
        "Another database follows the first and is not read: split the file.",
        database.another_at(), 1,
        database.file_bytes() - database.another_at());
  }
  for (const std::string& table : database.unreadable_tables()) {
    builder.diagnostics().Add(
        trace::Effect::kLost, "table_unreadable",
        "The definition of a table is damaged and none of its rows is read: " +
            table.substr(0, kShownName) + ".");
  }
}

void NoteTablesNotRead(const Database& database,
                       absl::FunctionRef<bool(std::string_view)> is_known,
                       trace::Diagnostics& diagnostics) {
  constexpr size_t kShownTables = 12;
  std::string names;
  size_t count = 0;
  for (const DatabaseTable& table : database.tables()) {
    if (is_known(table.name)) continue;
    Rows rows = database.Scan(&table, {table.columns[0]});
    if (!rows.Next()) continue;
    if (++count <= kShownTables && table.name.size() < kShownName)
      names += (names.empty() ? "" : ", ") + table.name;
  }
  if (count == 0) return;
  diagnostics.Add(
      trace::Effect::kInfo, "tables_not_read",
      "Tables with records that lamina does not use: " + names + ".",
      trace::Diagnostics::kNoOffset, count);
}

void NoteBreak(const DatabaseTable& table, const PassEnd& end,
               trace::Diagnostics& diagnostics) {
  if (end.damage.empty()) return;
  diagnostics.Add(trace::Effect::kLost, "table_breaks_off",
                  "A table of the database is damaged and read only in part: " +
                      table.name + " after " + std::to_string(end.rows) +
                      " rows (" + end.damage + ").");
}

}  // namespace lamina::ingest
