// SPDX-License-Identifier: Apache-2.0
//
// One workbook, one sheet per table plus a sheet of notes. Numbers are
// numbers; times are in microseconds as doubles, which is what a spreadsheet
// can hold (exact up to 2^53 ns, that is 104 days).
#include <cmath>
#include <cstdio>
#include <fcntl.h>
#include <set>
#include <unistd.h>
#include <xlsxwriter.h>

#include "base/byte_sink.h"
#include "base/escape.h"
#include "base/leftovers.h"
#include "report/common/writer.h"

namespace lamina::report::xlsx {
namespace {

constexpr size_t kMaxRows = 1048576 - 1;
constexpr size_t kMaxCellBytes = 32000;

// Sheet names: at most 31 characters, without []:*?/\, unique.
std::string SheetName(std::string_view name, std::set<std::string>& used) {
  std::string out;
  for (char c : name)
    out += std::string_view("[]:*?/\\").find(c) == std::string_view::npos ? c
                                                                          : '_';
  out = out.substr(0, 31);
  for (int i = 2; !used.insert(out).second; ++i) {
    const std::string suffix = "_" + std::to_string(i);
    out = out.substr(0, 31 - suffix.size()) + suffix;
  }
  return out;
}

std::string CleanText(std::string_view text) {
  std::string out = Shorten(text, kMaxCellBytes);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') c = ' ';
  }
  return IsValidUtf8(out) ? out : RepairUtf8(out);
}

void WriteTable(const Table& table, lxw_workbook* book, lxw_format* head,
                std::set<std::string>& used) {
  lxw_worksheet* sheet =
      workbook_add_worksheet(book, SheetName(table.name(), used).c_str());
  if (sheet == nullptr) return;
  for (size_t c = 0; c < table.columns(); ++c) {
    const Column& column = table.schema().columns[c];
    const auto col = static_cast<lxw_col_t>(c);
    worksheet_write_string(sheet, 0, col, CleanText(column.name).c_str(), head);
    worksheet_set_column(sheet, col, col,
                         column.type == ColumnType::kText ? 40 : 14, nullptr);
  }
  worksheet_freeze_panes(sheet, 1, 0);
  const size_t rows = std::min(table.rows(), kMaxRows);
  for (size_t row = 0; row < rows; ++row) {
    const auto r = static_cast<lxw_row_t>(row + 1);
    for (size_t c = 0; c < table.columns(); ++c) {
      const Value value = table.At(row, c);
      if (value.null()) continue;
      const auto col = static_cast<lxw_col_t>(c);
      switch (table.schema().columns[c].type) {
        case ColumnType::kText:
          // Written as a string whatever it starts with: no formula runs.
          worksheet_write_string(sheet, r, col, CleanText(value.text()).c_str(),
                                 nullptr);
          break;
        case ColumnType::kBool:
          worksheet_write_boolean(sheet, r, col, value.boolean(), nullptr);
          break;
        case ColumnType::kReal:
          if (std::isfinite(value.real()))
            worksheet_write_number(sheet, r, col, value.real(), nullptr);
          break;
        case ColumnType::kInt:
          worksheet_write_number(sheet, r, col,
                                 static_cast<double>(value.integer()), nullptr);
          break;
        case ColumnType::kTime:
          worksheet_write_number(sheet, r, col,
                                 static_cast<double>(value.integer()) / 1000.0,
                                 nullptr);
          break;
      }
    }
  }
  if (rows > 0) {
    worksheet_autofilter(sheet, 0, 0, static_cast<lxw_row_t>(rows),
                         static_cast<lxw_col_t>(table.columns() - 1));
  }
}

Table NotesTable(const std::vector<Note>& notes) {
  Table table({"notes",
               "What the report found.",
               {{"severity", ColumnType::kText, "Kind of note."},
                {"id", ColumnType::kText, "Stable name of the note."},
                {"worth_us", ColumnType::kTime, "Worth at most."},
                {"text", ColumnType::kText, "The finding."}}});
  for (const Note& note : notes)
    table.Add(SeverityName(note.severity), note.id, note.worth_ns, note.text);
  return table;
}

// The library writes to names only, and says on stderr what goes wrong.
class Quiet {
 public:
  Quiet() {
    std::fflush(stderr);
    stderr_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (stderr_ >= 0 && nothing >= 0) dup2(nothing, STDERR_FILENO);
    if (nothing >= 0) ::close(nothing);
  }
  ~Quiet() {
    std::fflush(stderr);
    if (stderr_ < 0) return;
    dup2(stderr_, STDERR_FILENO);
    ::close(stderr_);
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  int stderr_;
};

// Writes into a folder of its own, which also holds what the library keeps on
// the way.
Status WriteBook(const Document& document, const std::string& folder,
                 const std::string& path) {
  const Quiet quiet;
  std::string scratch = folder;
  lxw_workbook_options settings{};
  settings.constant_memory = LXW_TRUE;
  settings.tmpdir = scratch.data();
  lxw_workbook* book = workbook_new_opt(path.c_str(), &settings);
  if (book == nullptr)
    return Fail(InputError(path, "cannot write the workbook"));
  // A fixed creation time: the same input gives the same bytes.
  lxw_doc_properties properties{};
  properties.created = 1577836800;  // 2020-01-01
  workbook_set_properties(book, &properties);
  lxw_format* head = workbook_add_format(book);
  format_set_bold(head);
  std::set<std::string> used;
  if (!document.result.notes.empty())
    WriteTable(NotesTable(document.result.notes), book, head, used);
  for (const Table& table : document.result.tables)
    WriteTable(table, book, head, used);
  const lxw_error error = workbook_close(book);
  if (error == LXW_NO_ERROR) return {};
  return Fail(InputError(
      path, std::string("cannot write the workbook: ") + lxw_strerror(error),
      "check the folder for temporary files (TMPDIR) and its free space"));
}

Status Write(const Document& document, const WriteOptions& options) {
  if (options.output == "-") {
    return Fail(UsageError("an xlsx workbook cannot go to standard output",
                           "give -o FILE.xlsx"));
  }
  // Asked first: whether it can be written at all.
  LAMINA_ASSIGN(const auto sink, CreateFileSink(options.output));
  LAMINA_ASSIGN(const Leftover folder, MakeTemporaryFolder());
  const std::string path = folder.path() + "/book.xlsx";
  LAMINA_TRY(WriteBook(document, folder.path(), path));
  LAMINA_TRY(SendFile(path, *sink));
  return sink->Close();
}

}  // namespace

WriterInfo Info() {
  return {"xlsx", "one workbook, a sheet per table", &Write};
}

}  // namespace lamina::report::xlsx
