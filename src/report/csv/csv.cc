// SPDX-License-Identifier: Apache-2.0
//
// One CSV file per table, RFC 4180, UTF-8, "\n" line ends. `-o DIR` writes
// DIR/<table>.csv; `-o X.csv` and standard output take one table, or several
// with a `# table` line in front of each.
#include <filesystem>

#include "base/byte_sink.h"
#include "base/escape.h"
#include "report/common/writer.h"

namespace lamina::report::csv {
namespace {

void WriteTable(const Table& table, ByteSink& sink) {
  std::string line;
  for (size_t c = 0; c < table.columns(); ++c) {
    if (c > 0) line += ',';
    AppendCsvField(line, table.schema().columns[c].name);
  }
  line += '\n';
  sink.Write(line);
  for (size_t row = 0; row < table.rows(); ++row) {
    line.clear();
    for (size_t c = 0; c < table.columns(); ++c) {
      if (c > 0) line += ',';
      if (table.schema().columns[c].type == ColumnType::kText) {
        AppendCsvField(line, table.At(row, c).text());
      } else {
        line += CellText(table, row, c);
      }
    }
    line += '\n';
    sink.Write(line);
  }
}

Status Write(const Document& document, const WriteOptions& options) {
  const auto& tables = document.result.tables;
  const bool one_file =
      options.output == "-" || options.output.ends_with(".csv") ||
      options.output.ends_with(".csv.gz");
  if (one_file) {
    LAMINA_ASSIGN(const auto sink, CreateFileSink(options.output));
    for (size_t i = 0; i < tables.size(); ++i) {
      if (tables.size() > 1) {
        if (i > 0) sink->Write("\n");
        sink->Write("# " + tables[i].name() + "\n");
      }
      WriteTable(tables[i], *sink);
    }
    return sink->Close();
  }
  LAMINA_TRY(MakeDirectory(options.output));
  for (const Table& table : tables) {
    const auto path =
        std::filesystem::path(options.output) / (table.name() + ".csv");
    LAMINA_ASSIGN(const auto sink, CreateFileSink(path.string()));
    WriteTable(table, *sink);
    LAMINA_TRY(sink->Close());
  }
  return {};
}

}  // namespace

WriterInfo Info() {
  return {"csv", "one CSV file per table", &Write};
}

}  // namespace lamina::report::csv
