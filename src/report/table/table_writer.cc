// SPDX-License-Identifier: Apache-2.0
//
// The terminal: notes first, then each table as aligned text.
#include "base/byte_sink.h"
#include "base/escape.h"
#include "report/common/writer.h"
#include "report/table/grid.h"
#include "report/table/notes.h"
#include "report/table/summary.h"

namespace lamina::report::table {
namespace {

constexpr size_t kDefaultRows = 20;

Status Write(const Document& document, const WriteOptions& options) {
  LAMINA_ASSIGN(const auto sink, CreateFileSink(options.output));
  if (document.summary) {
    sink->Write(FormatSummary(document.result, options.width, options.color,
                              options.top));
    return sink->Close();
  }
  sink->Write(FormatNotes(document.result.notes, options.width, options.color));
  bool first = document.result.notes.empty();
  for (const lamina::Table& table : document.result.tables) {
    GridOptions grid;
    grid.width = options.width;
    grid.color = options.color;
    grid.max_rows = options.top > 0 ? options.top : kDefaultRows;
    if (!first) sink->Write("\n");
    first = false;
    sink->Write(FormatGrid(table, grid));
  }
  return sink->Close();
}

}  // namespace

WriterInfo Info() { return {"table", "aligned text for a terminal", &Write}; }

}  // namespace lamina::report::table
