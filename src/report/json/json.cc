// SPDX-License-Identifier: Apache-2.0
//
// One JSON object:
//   {"lamina": {"version", "command", "inputs"},
//    "answer": {...},   of a report: what its first screen shows
//    "tables": {"NAME": [{column: value, ...}, ...]},
//    "notes": [{"severity", "id", "text", ...}]}
// Times are numbers in microseconds with three decimals (columns *_us), exact.
#include <cmath>

#include "base/byte_sink.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/writer.h"
#include "lamina/version.h"
#include "report/common/writer.h"

namespace lamina::report::json {
namespace {

void AppendCell(std::string& out, const Table& table, size_t row, size_t c) {
  const Value value = table.At(row, c);
  if (value.null()) {
    out += "null";
    return;
  }
  switch (table.schema().columns[c].type) {
    case ColumnType::kText:
      AppendJsonQuoted(out, value.text());
      return;
    case ColumnType::kBool:
      out += value.boolean() ? "true" : "false";
      return;
    case ColumnType::kReal:
      if (!std::isfinite(value.real())) {
        out += "null";
      } else {
        AppendNumber(out, value.real());
      }
      return;
    case ColumnType::kInt:
      AppendInt(out, value.integer());
      return;
    case ColumnType::kTime:
      AppendMicroseconds(out, value.integer());
      return;
  }
}

void WriteTable(const Table& table, ByteSink& sink) {
  std::vector<std::string> keys;
  for (const Column& column : table.schema().columns)
    keys.push_back(JsonQuote(column.name) + ": ");
  std::string line;
  for (size_t row = 0; row < table.rows(); ++row) {
    line = row == 0 ? "\n      {" : ",\n      {";
    for (size_t c = 0; c < table.columns(); ++c) {
      if (c > 0) line += ", ";
      line += keys[c];
      AppendCell(line, table, row, c);
    }
    line += '}';
    sink.Write(line);
  }
}

void WriteNote(const Note& note, ByteSink& sink) {
  std::string line;
  lamina::json::Writer w(line, lamina::json::Writer::Spaces::kAfter);
  w.Object();
  w.Text("severity", SeverityName(note.severity));
  w.Text("id", note.id);
  w.Text("text", note.text);
  if (note.worth_ns) w.Microseconds("worth_us", *note.worth_ns);
  if (!note.claim.empty()) w.Text("claim", note.claim);
  if (!note.evidence.empty()) {
    w.Array("evidence");
    for (const Evidence& evidence : note.evidence) {
      w.Object();
      w.Text("table", evidence.table);
      if (!evidence.column.empty()) {
        w.Text("column", evidence.column);
        w.Text("value", evidence.value);
      }
      if (!evidence.events.empty()) w.Ints("events", evidence.events);
      w.Close();
    }
    w.Close();
  }
  w.Close();
  sink.Write(line);
}

Status Write(const Document& document, const WriteOptions& options) {
  LAMINA_ASSIGN(const auto sink, CreateFileSink(options.output));
  std::string head = "{\n  \"lamina\": ";
  lamina::json::Writer w(head, lamina::json::Writer::Spaces::kAfter);
  w.Object();
  w.Text("version", Version());
  w.Text("command", document.command);
  w.Texts("inputs", document.inputs);
  w.Close();
  if (!options.answer.empty()) head += ",\n  \"answer\": " + options.answer;
  head += ",\n  \"tables\": {";
  sink->Write(head);
  const auto& tables = document.result.tables;
  for (size_t i = 0; i < tables.size(); ++i) {
    sink->Write(i > 0 ? ",\n    " : "\n    ");
    sink->Write(JsonQuote(tables[i].name()) + ": [");
    WriteTable(tables[i], *sink);
    sink->Write("]");
  }
  sink->Write("\n  },\n  \"notes\": [");
  const auto& notes = document.result.notes;
  for (size_t i = 0; i < notes.size(); ++i) {
    sink->Write(i > 0 ? ",\n    " : "\n    ");
    WriteNote(notes[i], *sink);
  }
  sink->Write("\n  ]\n}\n");
  return sink->Close();
}

}  // namespace

WriterInfo Info() {
  return {"json", "one JSON object with all tables and notes", &Write};
}

}  // namespace lamina::report::json
