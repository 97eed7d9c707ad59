// SPDX-License-Identifier: Apache-2.0
//
// Markdown for a pull request: the answer of a report, the notes, then tables.
// The first two are open, the others fold out; cells are as on a terminal.
#include <algorithm>
#include <fmt/core.h>

#include "base/byte_sink.h"
#include "base/counted.h"
#include "base/escape.h"
#include "report/common/writer.h"
#include "report/table/grid.h"

namespace lamina::report::markdown {
namespace {

constexpr size_t kDefaultRows = 10;
constexpr size_t kOpenTables = 2;
constexpr size_t kMaxText = 80;  // bytes of a cell

void WriteTable(const Table& table, size_t max_rows, ByteSink& sink) {
  const auto& columns = table.schema().columns;
  std::string head = "|";
  std::string rule = "|";
  std::vector<size_t> shown;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (columns[c].shown == Shown::kHidden) continue;
    shown.push_back(c);
    head += " " + MarkdownCode(columns[c].name) + " |";
    rule += columns[c].type == ColumnType::kText ? " --- |" : " ---: |";
  }
  sink.Write(head + "\n" + rule + "\n");
  const size_t rows = std::min(table.rows(), max_rows);
  std::string line;
  for (size_t row = 0; row < rows; ++row) {
    line = "|";
    for (const size_t c : shown) {
      const Value value = table.At(row, c);
      if (value.null()) {
        line += " |";
      } else if (columns[c].type == ColumnType::kText) {
        line += " " + MarkdownCode(Shorten(value.text(), kMaxText)) + " |";
      } else {
        line += " " + EscapeMarkdown(table::HumanCell(table, row, c)) + " |";
      }
    }
    sink.Write(line + "\n");
  }
  if (table.rows() > rows)
    sink.Write("\n" + Counted(table.rows() - rows, "more row") + "\n");
}

Status Write(const Document& document, const WriteOptions& options) {
  LAMINA_ASSIGN(const auto sink, CreateFileSink(options.output));
  sink->Write(
      fmt::format("## lamina {}\n\n", EscapeMarkdown(document.command)));
  if (!options.answer.empty()) sink->Write(options.answer + "\n");
  for (const Note& note : document.result.notes) {
    const std::string text = EscapeMarkdown(note.text);
    if (note.severity == Severity::kVerdict) {
      sink->Write("**" + text + "**\n\n");
    } else {
      sink->Write("- " + text + "\n");
    }
  }
  size_t open = 0;
  for (const Table& table : document.result.tables) {
    if (table.rows() == 0) continue;
    const std::string title = table.name() + ": " + table.schema().doc;
    if (open < kOpenTables) {
      sink->Write(fmt::format("\n### {}\n\n", EscapeMarkdown(title)));
    } else {
      sink->Write(fmt::format("\n<details><summary>{}</summary>\n\n",
                              EscapeXml(title)));
    }
    WriteTable(table, options.top > 0 ? options.top : kDefaultRows, *sink);
    if (open >= kOpenTables) sink->Write("\n</details>\n");
    ++open;
  }
  return sink->Close();
}

}  // namespace

WriterInfo Info() {
  return {"markdown", "Markdown for a pull request", &Write};
}

}  // namespace lamina::report::markdown
