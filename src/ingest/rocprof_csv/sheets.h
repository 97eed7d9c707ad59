// SPDX-License-Identifier: Apache-2.0
//
// The CSV files of a run: what each is, and their rows one file after the
// other.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv_cutter.h"
#include "base/csv_rows.h"
#include "ingest/rocprof_csv/tables.h"
#include "trace/diagnostics.h"

namespace lamina::ingest::rocprof_csv {

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

}  // namespace lamina::ingest::rocprof_csv
