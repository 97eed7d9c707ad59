// SPDX-License-Identifier: Apache-2.0
//
// Tools that are no command, or differ from it: to find and open traces, to
// learn what can be asked, and SQL with errors that say what there is.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "engine/captures.h"
#include "engine/find_traces.h"
#include "engine/memory.h"
#include "graph/folder.h"
#include "mcp/tools.h"
#include "questions/query_input.h"
#include "sql/database.h"
#include "sql/table_def.h"
#include "table/row_columns.h"

namespace lamina::mcp {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Problem> Refuse(Problem problem) {
  return tl::make_unexpected(std::move(problem));
}

Json TraceArgument(const std::string& handle) {
  Json out;
  out["trace"] = handle;
  return out;
}

Document DocumentOf(const char* question) {
  Document document;
  document.command = question;
  return document;
}

// ---- open_trace ----

struct TraceRow {
  std::string_view handle, path, format;
  size_t file_bytes, events, device_slices;
  std::string_view devices;
  std::optional<int64_t> rank, steps;
};

Table TraceTable(const trace::Trace& trace, const std::string& path,
                 const std::string& shown, const std::string& handle,
                 std::optional<int64_t> steps) {
  std::string devices;
  for (const trace::DeviceInfo& device : trace.info.devices)
    devices += (devices.empty() ? "" : ", ") + device.name;
  const RowColumns<TraceRow> columns{
      "trace",
      "The trace that is open.",
      {{"handle", ColumnType::kText, "Stands for it in other calls.",
        &TraceRow::handle},
       {"path", ColumnType::kText, "File.", &TraceRow::path},
       {"format", ColumnType::kText, "Format.", &TraceRow::format},
       {"file_bytes", ColumnType::kInt, "Size.", &TraceRow::file_bytes,
        Shown::kBytes},
       {"events", ColumnType::kInt, "Records.", &TraceRow::events},
       {"device_slices", ColumnType::kInt, "Work on devices.",
        &TraceRow::device_slices},
       {"devices", ColumnType::kText, "Their names.", &TraceRow::devices},
       {"rank", ColumnType::kInt, "Rank; null: not known.", &TraceRow::rank},
       {"steps", ColumnType::kInt, "Profiler steps.", &TraceRow::steps}}};
  Table table(columns.schema());
  columns.Add(table, {.handle = handle,
                      .path = shown,
                      .format = trace.info.format,
                      .file_bytes = trace.info.file_bytes,
                      .events = trace.info.events,
                      .device_slices = trace.device_slices().size(),
                      .devices = devices,
                      .rank = engine::RankOf(trace, path),
                      .steps = steps});
  return table;
}

Outcome OpenTrace(const Workshop& workshop, const Call& call) {
  const std::string path = call.Text("path");
  const std::string shown = workshop.inputs->NameOf(path);
  std::error_code error;
  Made made;
  made.document = DocumentOf("open_trace");
  if (fs::is_directory(path, error)) {
    const auto files = engine::FindTraces({path});
    if (files && files->size() > 1) {
      return Refuse(UsageError(
          fmt::format("{} holds {}", shown, Counted(files->size(), "trace")),
          "open one of them (list_traces names them), or call ranks with this "
          "folder"));
    }
    if (!files && graph::ListDumps(path)) {
      return Refuse(UsageError(shown + " holds graph dumps and no trace",
                               "call graph_layers with this folder"));
    }
  } else if (engine::IsMemorySnapshot(path)) {
    return Refuse(UsageError(shown + " is a memory snapshot and holds no time",
                             "call report with it: its tables are those of "
                             "memory"));
  }
  questions::OpenTraces::Opening how = workshop.OpeningFor(call);
  if (call.Has("capture")) {
    how.captures.emplace();
    for (const std::string capture : call.arguments["capture"])
      how.captures->push_back(workshop.inputs->NameOf(capture));
  }
  LAMINA_ASSIGN(const auto source, workshop.traces->Open(shown, how));
  const std::string handle = workshop.inputs->HandleOf(path);
  const trace::Trace* const trace = &source->trace();
  engine::Watch watch;
  watch.stop = call.stop;
  std::optional<int64_t> steps;
  if (const sql::TableDef* def = sql::FindTable("step")) {
    LAMINA_ASSIGN(const Table table, sql::ReadTable(*source, *def, watch));
    steps = static_cast<int64_t>(table.rows());
  }
  ResultSet& result = made.document.result;
  result.tables.push_back(TraceTable(*trace, path, shown, handle, steps));
  if (const sql::TableDef* def = sql::FindTable("trace_health")) {
    LAMINA_ASSIGN(Table health, sql::ReadTable(*source, *def, watch));
    result.tables.push_back(std::move(health));
  }
  const bool device = !trace->device_slices().empty();
  if (!device) {
    result.notes.push_back(MakeNote(
        Severity::kWarning, "no_device_work",
        "The trace has no work of a device: only the host can be asked about.",
        {{"trace", "", "", {}}}));
  }
  made.next.push_back({"report", TraceArgument(handle), "where the time went"});
  if (device) {
    made.next.push_back(
        {"diagnose", TraceArgument(handle), "what to change next"});
    made.next.push_back({"layers", TraceArgument(handle), "passes and layers"});
  }
  return made;
}

// ---- list_traces ----

struct FileRow {
  std::string_view path, kind;
  size_t bytes;
  bool open;
};

Outcome ListTraces(const Workshop& workshop, const Call& call) {
  const std::string folder =
      call.Has("dir") ? call.Text("dir") : workshop.inputs->folders().front();
  const std::string wanted = call.Text("query");
  const RowColumns<FileRow> columns{
      "files",
      "Files that lamina reads, by their names.",
      {{"path", ColumnType::kText, "Path below the allowed folder.",
        &FileRow::path},
       {"kind", ColumnType::kText, "trace, memory snapshot or graph dump.",
        &FileRow::kind},
       {"bytes", ColumnType::kInt, "Size.", &FileRow::bytes, Shown::kBytes},
       {"open", ColumnType::kBool, "Whether it is open.", &FileRow::open}}};
  Table table(columns.schema());
  const auto add = [&](const std::string& path, const char* kind) {
    const std::string name = workshop.inputs->NameOf(path);
    if (!wanted.empty() && !Contains(name, wanted)) return;
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    columns.Add(table, {.path = name,
                        .kind = kind,
                        .bytes = error ? 0 : bytes,
                        .open = workshop.traces->IsOpen(path)});
  };
  if (const auto files = engine::FindTracesAndSnapshots({folder})) {
    for (const std::string& file : *files)
      add(file, engine::HasSnapshotName(file) ? "memory snapshot" : "trace");
  }
  std::vector<std::string> folders = {folder};
  std::error_code error;
  for (fs::recursive_directory_iterator
           it(folder, fs::directory_options::skip_permission_denied, error),
       end;
       !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && !it->is_symlink(ignored))
      folders.push_back(it->path().string());
  }
  std::sort(folders.begin(), folders.end());
  for (const std::string& one : folders) {
    const auto dumps = graph::ListDumps(one);
    if (!dumps) continue;
    for (const graph::DumpFile& dump : *dumps) {
      // Other text files have numbers in their names as well.
      if (!dump.stage.empty()) add(dump.path, "graph dump");
    }
  }
  Made made;
  made.document = DocumentOf("list_traces");
  if (table.rows() == 0) {
    made.document.result.notes.push_back(
        MakeNote(Severity::kInfo, "no_files",
                 "No file here has the name of a trace or of a graph dump" +
                     (wanted.empty() ? "." : " with '" + wanted + "' in it.")));
  }
  made.document.result.tables.push_back(std::move(table));
  return made;
}

// ---- tables ----

// Rows of a list whose cell in `column` is in `names`, or that have `search` in
// a text; all when neither is given.
Table Filtered(const Table& list, size_t column,
               const std::vector<std::string>& names,
               const std::string& search) {
  Table out(list.schema());
  const auto hidden = list.schema().Find("hidden");
  for (size_t row = 0; row < list.rows(); ++row) {
    if (hidden && list.Int(row, *hidden) != 0) continue;
    bool taken = names.empty() && search.empty();
    taken |= std::find(names.begin(), names.end(),
                       list.At(row, column).text()) != names.end();
    std::vector<Value> cells;
    for (size_t c = 0; c < list.columns(); ++c) {
      cells.push_back(list.At(row, c));
      taken |= !search.empty() && cells.back().kind() == Value::Kind::kText &&
               ContainsIgnoringCase(cells.back().text(), search);
    }
    if (taken) out.AddRow(cells);
  }
  return out;
}

std::vector<std::string_view> TableNames() {
  std::vector<std::string_view> names;
  for (const sql::TableDef& table : sql::Tables()) names.push_back(table.name);
  return names;
}

Outcome ListOfTables(const Call& call) {
  std::vector<std::string> names;
  if (call.Has("name"))
    names = call.arguments["name"].get<std::vector<std::string>>();
  const std::string search = LowerCase(call.Text("search"));
  for (const std::string& name : names) {
    if (sql::FindTable(name) != nullptr) continue;
    Problem problem(sql::NoSuchTable(name));
    problem.error.hint = "tables without a name lists all";
    problem.did_you_mean = NearestOf(name, TableNames());
    return Refuse(std::move(problem));
  }
  Made made;
  made.document = DocumentOf("tables");
  auto& tables = made.document.result.tables;
  tables.push_back(Filtered(sql::ListTables(), 0, names, search));
  // All columns of all tables are too much unless asked for.
  if (!names.empty() || !search.empty())
    tables.push_back(Filtered(sql::ListColumns(), 0, names, search));
  if (names.empty())
    tables.push_back(Filtered(sql::ListFunctions(), 0, names, search));
  return made;
}

// ---- query ----

// The word behind "no such column: " in a message of SQLite.
std::string WordBehind(const std::string& message, std::string_view text) {
  const size_t at = message.find(text);
  if (at == std::string::npos) return {};
  std::string word;
  for (const char c : message.substr(at + text.size())) {
    if (!IsWordCharacter(c) && c != '.') break;
    word += c;
  }
  return word.substr(word.rfind('.') + 1);
}

// What a query that failed can learn from.
Problem Teach(Error error, const std::string& sql) {
  Problem problem(std::move(error));
  const std::string& what = problem.error.what;
  if (problem.error.kind == ErrorKind::kLimit) {
    problem.error.hint +=
        (problem.error.hint.empty() ? "" : "; ") +
        std::string(
            "ask a result table (plural names: ops, kernels), or "
            "narrow with WHERE start_ns BETWEEN ... AND ...");
    return problem;
  }
  if (const std::string name = WordBehind(what, "no such table: ");
      !name.empty()) {
    problem.did_you_mean = NearestOf(name, TableNames());
    return problem;
  }
  const auto tables = sql::TablesIn(sql);
  std::vector<std::string_view> columns;
  std::string list;
  for (const sql::TableDef* table : tables) {
    list += (list.empty() ? "" : "; ") + sql::ColumnsText(*table);
    for (const sql::ColumnDef& column : table->columns)
      columns.push_back(column.name);
  }
  if (const std::string name = WordBehind(what, "no such column: ");
      !name.empty()) {
    problem.did_you_mean = NearestOf(name, columns);
    problem.error.hint = list;
  }
  return problem;
}

// Why a result has no rows: the tables of the query that have none themselves.
Result<Note> NoRows(sql::Database& database, const std::string& sql,
                    const sql::QueryOptions& options) {
  std::string empty;
  for (const sql::TableDef* table : sql::TablesIn(sql)) {
    LAMINA_ASSIGN(
        const auto rows,
        database.Run("SELECT 1 FROM " + table->name + " LIMIT 1", options));
    if (rows[0].rows() == 0) empty += (empty.empty() ? "" : ", ") + table->name;
  }
  return MakeNote(
      Severity::kInfo, "no_rows",
      empty.empty()
          ? "No row meets the conditions; every table that is named has rows."
          : "No rows: the trace has none in " + empty +
                "; trace_health says what was not recorded.");
}

Outcome Query(const Workshop& workshop, const Call& call) {
  const std::string text = call.Text("sql");
  Caller caller(workshop, call);
  std::vector<std::string> inputs;
  std::vector<sql::SchemaInput> schemas;
  for (const auto& [name, argument] :
       {std::pair("main", "trace"), std::pair("b", "b")}) {
    if (!call.Has(argument)) continue;
    LAMINA_ASSIGN(auto schema,
                  questions::OpenSchema(
                      name, workshop.inputs->NameOf(call.Text(argument)),
                      caller.asker, inputs));
    schemas.push_back(std::move(schema));
  }
  LAMINA_ASSIGN(auto database, sql::Database::Open(std::move(schemas)));
  sql::QueryOptions options;
  options.time_limit = workshop.time_limit;
  if (call.Has("time_limit_ms")) {
    options.time_limit =
        std::min(options.time_limit,
                 std::chrono::milliseconds(
                     call.arguments["time_limit_ms"].get<int64_t>()));
  }
  options.keep_rows = call.arguments.value("limit", int64_t{10'000});
  options.max_bytes = uint64_t{256} << 20;
  options.stop = call.stop;
  if (call.Has("params")) {
    for (const std::string param : call.arguments["params"]) {
      const size_t equals = param.find('=');
      if (equals == 0 || equals == std::string::npos) {
        return Refuse(UsageError(
            "query: argument params: expected NAME=VALUE, got '" + param + "'",
            "limit=10 for :limit"));
      }
      options.params[param.substr(0, equals)] =
          sql::ParameterOf(param.substr(equals + 1));
    }
  }
  auto tables = database->Run(text, options);
  if (!tables) return Refuse(Teach(std::move(tables).error(), text));
  if (tables->empty()) {
    return Refuse(UsageError("the query has no statement that gives rows",
                             "SELECT, VALUES or EXPLAIN"));
  }
  Made made;
  made.document = DocumentOf("query");
  ResultSet& result = made.document.result;
  const std::vector<uint64_t> counts = database->row_counts();
  for (size_t i = 0; i < tables->size(); ++i) {
    if (counts[i] <= (*tables)[i].rows()) continue;
    result.notes.push_back(MakeNote(
        Severity::kWarning, "rows_left_out",
        fmt::format("{} has {}, of which the first {} are kept: give a larger "
                    "limit, or aggregate.",
                    (*tables)[i].name(), Counted(counts[i], "row"),
                    (*tables)[i].rows())));
  }
  if (tables->back().rows() == 0) {
    LAMINA_ASSIGN(Note note, NoRows(*database, text, options));
    result.notes.push_back(std::move(note));
  }
  result.tables = *std::move(tables);
  return made;
}

}  // namespace

void AddTraceTools(const Workshop& workshop, std::vector<Tool>& tools) {
  Tool open;
  open.name = "open_trace";
  open.title = "Open a trace";
  open.doc =
      "Reads a trace (PyTorch, nsys sqlite, ROCm, JAX, Perfetto) and gives a "
      "handle for other tools, what is in it, and trace_health: anything "
      "that is not ok limits every answer.";
  open.params = {Param{.name = "path",
                       .doc = "Path below an allowed folder",
                       .role = Role::kPath,
                       .required = true},
                 Param{.name = "capture",
                       .doc = "Captures of its graphs",
                       .role = Role::kPath,
                       .many = true}};
  open.run = [workshop](const Call& call) { return OpenTrace(workshop, call); };
  tools.push_back(std::move(open));

  Tool list;
  list.name = "list_traces";
  list.title = "What there is to open";
  list.doc = "Traces and graph dumps below a folder.";
  list.params = {Param{.name = "dir",
                       .doc = "Folder (default: the first allowed one)",
                       .role = Role::kPath},
                 Param{.name = "query", .doc = "Part of the path"}};
  list.run = [workshop](const Call& call) {
    return ListTraces(workshop, call);
  };
  tools.push_back(std::move(list));

  Tool names;
  names.name = "tables";
  names.title = "Tables for SQL";
  names.doc =
      "Tables that query can read, with units and meaning of their columns, "
      "and functions. Singular names are rows of the trace (kernel, op), "
      "plural ones results (kernels, ops), which are cheap and accounted for.";
  names.params = {
      Param{.name = "name", .doc = "Tables to describe", .many = true},
      Param{.name = "search", .doc = "Word in a name or in a meaning"}};
  names.run = ListOfTables;
  tools.push_back(std::move(names));

  Tool query;
  query.name = "query";
  query.title = "SQL over a trace";
  query.doc =
      "Rows of SELECTs in SQLite's language, read only. Times are integers in "
      "nanoseconds (*_ns), NULL is not recorded. Look columns up with tables "
      "first.";
  query.params = {
      Param{.name = "trace",
            .doc = "Path or handle of a trace, or a folder of ranks (then "
                   "tables have a column rank)",
            .role = Role::kPath,
            .required = true},
      Param{.name = "sql", .doc = "The query", .required = true},
      Param{.name = "b",
            .doc = "A second trace: its tables are b.kernel and so on",
            .role = Role::kPath},
      Param{.name = "params",
            .doc = "NAME=VALUE for :NAME in the query",
            .many = true},
      Param{.name = "limit",
            .doc = "Rows that are kept of each result",
            .type = Type::kWhole,
            .low = 1,
            .high = 1'000'000,
            .default_text = "10000"},
      Param{.name = "time_limit_ms",
            .doc = "The query ends after this",
            .type = Type::kWhole,
            .low = 1,
            .high = 3'600'000}};
  query.run = [workshop](const Call& call) { return Query(workshop, call); };
  tools.push_back(std::move(query));
}

}  // namespace lamina::mcp
