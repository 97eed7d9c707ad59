// SPDX-License-Identifier: Apache-2.0
//
// One CSV file per table, RFC 4180, UTF-8, "\n" line ends. `-o DIR` writes
// DIR/<table>.csv; `-o X.csv` and standard output take one table, or several
// with a `# table` line in front of each.
#include <algorithm>
#include <filesystem>

#include "base/byte_sink.h"
#include "base/escape.h"
#include "base/parallel.h"
#include "report/common/writer.h"

namespace lamina::report::csv {
namespace {

void AppendCell(std::string& out, const Table& table, size_t row, size_t c) {
  if (table.schema().columns[c].type == ColumnType::kText) {
    AppendSafeCsvField(out, table.At(row, c).text());
  } else {
    AppendCellText(out, table, row, c);
  }
}

// Rows are formatted in parallel, a block at a time, and written in order.
constexpr size_t kBlockRows = 4096;

void WriteTable(const Table& table, int threads, ByteSink& sink) {
  std::string head;
  for (size_t c = 0; c < table.columns(); ++c) {
    if (c > 0) head += ',';
    AppendCsvField(head, table.schema().columns[c].name);
  }
  head += '\n';
  sink.Write(head);
  const size_t blocks = (table.rows() + kBlockRows - 1) / kBlockRows;
  const size_t wave = static_cast<size_t>(std::max(threads, 1)) * 4;
  std::vector<std::string> texts(std::min(wave, blocks));
  for (size_t first = 0; first < blocks; first += wave) {
    const size_t count = std::min(wave, blocks - first);
    ParallelFor(threads, count, [&](size_t i) {
      std::string& text = texts[i];
      text.clear();
      const size_t begin = (first + i) * kBlockRows;
      const size_t end = std::min(table.rows(), begin + kBlockRows);
      for (size_t row = begin; row < end; ++row) {
        for (size_t c = 0; c < table.columns(); ++c) {
          if (c > 0) text += ',';
          AppendCell(text, table, row, c);
        }
        text += '\n';
      }
    });
    for (size_t i = 0; i < count; ++i) sink.Write(texts[i]);
  }
}

Status Write(const Document& document, const WriteOptions& options) {
  const auto& tables = document.result.tables;
  // What is there and is no folder (a device, a pipe, a file) takes all tables.
  namespace fs = std::filesystem;
  std::error_code none_there;
  const bool one_file = options.output == "-" ||
                        options.output.ends_with(".csv") ||
                        options.output.ends_with(".csv.gz") ||
                        (fs::exists(options.output, none_there) &&
                         !fs::is_directory(options.output, none_there));
  if (one_file) {
    LAMINA_ASSIGN(const auto sink, CreateFileSink(options.output));
    for (size_t i = 0; i < tables.size(); ++i) {
      if (tables.size() > 1) {
        if (i > 0) sink->Write("\n");
        sink->Write("# " + tables[i].name() + "\n");
      }
      WriteTable(tables[i], options.threads, *sink);
    }
    return sink->Close();
  }
  LAMINA_TRY(MakeDirectory(options.output));
  for (const Table& table : tables) {
    const auto path =
        std::filesystem::path(options.output) / (table.name() + ".csv");
    LAMINA_ASSIGN(const auto sink, CreateFileSink(path.string()));
    WriteTable(table, options.threads, *sink);
    LAMINA_TRY(sink->Close());
  }
  return {};
}

}  // namespace

WriterInfo Info() { return {"csv", "one CSV file per table", &Write}; }

}  // namespace lamina::report::csv
