// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof_csv/sheets.h"

#include <utility>

namespace lamina::ingest::rocprof_csv {
namespace {

void AddLostRows(uint64_t offset, trace::Diagnostics& diagnostics) {
  diagnostics.Add(trace::Effect::kLost, "rows_damaged",
                  "A CSV file ends inside a quoted field or has a row of "
                  "more than 16 MB.",
                  offset);
}

}  // namespace

void AddRowDamage(const CsvRows& rows, const Chunk& chunk,
                  trace::Diagnostics& diagnostics) {
  if (const auto row = rows.damage())
    AddLostRows(chunk.offset + *row, diagnostics);
}

Status Sheet::Open() {
  LAMINA_ASSIGN(const bool any, cutter_.Next(first_));
  CsvRows rows(any ? first_.text : std::string_view());
  if (rows.Next()) {
    header_.assign(rows.fields().begin(), rows.fields().end());
    // A mark of UTF-8 that editors leave.
    if (header_[0].starts_with("\xEF\xBB\xBF")) header_[0].erase(0, 3);
    header_bytes_ = rows.end();
    first_.text.remove_prefix(rows.end());
    first_.offset += rows.end();
  }
  kind_ = KindOf(header_);
  return {};
}

Result<bool> Sheet::Next(Chunk& chunk) {
  if (first_.text.empty()) return cutter_.Next(chunk);
  chunk = std::exchange(first_, Chunk());
  return true;
}

void Sheet::AddDamage(trace::Diagnostics& diagnostics) const {
  if (const auto row = cutter_.damage()) AddLostRows(*row, diagnostics);
  if (const auto damage = source().damage()) {
    diagnostics.Add(trace::Effect::kLost, "input_damaged",
                    "Part of the input cannot be read: " + damage->what + ".",
                    damage->offset);
  }
}

Result<bool> SheetStream::Next(Chunk& chunk) {
  for (; sheet_ < sheets_.size(); ++sheet_, any_ = false) {
    Sheet& sheet = *sheets_[sheet_];
    // Those were read before.
    if (sheet.kind() == TableKind::kNone ||
        sheet.kind() == TableKind::kAgents ||
        sheet.kind() == TableKind::kCounters)
      continue;
    LAMINA_ASSIGN(const bool more, sheet.Next(chunk));
    if (!more) {
      sheet.AddDamage(diagnostics_);
      continue;
    }
    if (sheet.kind() == TableKind::kCopies && !any_) {
      diagnostics_.Add(
          trace::Effect::kInfo, "copies_without_bytes",
          "CSV files have no sizes of copies: write JSON or a database for "
          "them.");
    }
    any_ = true;
    chunk.array = static_cast<uint32_t>(sheet_);
    chunk.sequence = sequence_++;
    return true;
  }
  return false;
}

uint64_t SheetStream::stored_position() const {
  uint64_t sum = 0;
  for (const auto& sheet : sheets_) sum += sheet->source().stored_position();
  return sum;
}

uint64_t SheetStream::stored_size() const {
  uint64_t sum = 0;
  for (const auto& sheet : sheets_) sum += sheet->source().stored_size();
  return sum;
}

}  // namespace lamina::ingest::rocprof_csv
