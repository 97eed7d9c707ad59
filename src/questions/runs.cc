// SPDX-License-Identifier: Apache-2.0
//
// lamina runs: what was recorded before is kept, and what comes is held against
// it. A run is read and computed before the store is changed, so that others
// wait for no more than one short transaction.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fmt/core.h>
#include <fnmatch.h>
#include <map>
#include <set>

#include "base/byte_source.h"
#include "base/child_process.h"
#include "base/counted.h"
#include "base/csv_rows.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/exit_status.h"
#include "base/leftovers.h"
#include "base/text.h"
#include "compare/runs/compare.h"
#include "engine/find_traces.h"
#include "questions/bodies.h"
#include "questions/diff.h"
#include "runstore/store.h"
#include "runstore/trend.h"
#include "table/row_columns.h"

namespace lamina::questions {

bool SayDecision(const runstore::Decision& decision, ResultSet& result) {
  result.notes.push_back(MakeNote(
      Severity::kInfo, "decision",
      fmt::format("{} against {} was {} by {} on {}: {}",
                  EscapeTerminal(decision.run_name),
                  EscapeTerminal(decision.against_name),
                  decision.accepted ? "accepted" : "rejected",
                  EscapeTerminal(decision.by),
                  runstore::DateText(decision.decided_ns).substr(0, 10),
                  EscapeTerminal(decision.reason))));
  return decision.accepted;
}

namespace {

using runstore::Run;
using runstore::Store;
using runstore::Tags;

constexpr size_t kTerminalRuns = 30;

void AddStoreTo(Description& args, std::string& store) {
  args.Add("--store", store,
           "The store: a file, or postgresql://[USER@]HOST/DATABASE (default: "
           "$LAMINA_STORE, else lamina/runs.sqlite in the data folder of the "
           "user)")
      .ValueName("STORE");
}

void AddWhereTo(Description& args, std::vector<std::string>& where) {
  args.Add("--where", where,
           "Only runs with this tag, name, device, model or key; may be "
           "repeated")
      .OneWord()
      .ValueName("NAME=VALUE");
}

Result<Store> OpenStore(const std::string& store, Store::Mode mode) {
  LAMINA_ASSIGN(const std::string path, runstore::StorePath(store));
  return Store::Open(path, mode);
}

// Pairs of "name=value".
Result<runstore::Where> ParsePairs(const char* option,
                                   const std::vector<std::string>& texts) {
  constexpr size_t kLongestName = 64;
  runstore::Where out;
  for (const std::string& text : texts) {
    const size_t equal = text.find('=');
    const std::string name = text.substr(0, equal);
    const bool usable = equal != std::string::npos && !name.empty() &&
                        name.size() <= kLongestName &&
                        std::all_of(name.begin(), name.end(), [](char c) {
                          return IsWordCharacter(c) || c == '-' || c == '.';
                        });
    if (!usable) {
      return Fail(
          UsageError(fmt::format("{}: '{}' is no name=value", option, text),
                     "a name has letters, digits, '_', '-' and '.', as in "
                     "commit=c02e6f8"));
    }
    out.emplace_back(name, text.substr(equal + 1));
  }
  return out;
}

// Runs that are asked for; there must be some.
Result<std::vector<Run>> RunsOf(Store& store,
                                const std::vector<std::string>& where) {
  LAMINA_ASSIGN(const auto pairs, ParsePairs("⟨where⟩", where));
  LAMINA_ASSIGN(std::vector<Run> runs, store.Runs(pairs));
  if (runs.empty()) {
    return Fail(InputError(store.path(),
                           where.empty() ? "holds no run" : "holds no such run",
                           "⟨lamina⟩ runs add adds some"));
  }
  return runs;
}

Document NewDocument(const char* command, const std::string& store) {
  Document document;
  document.command = command;
  document.inputs = {store};
  return document;
}

// On a terminal what says nothing, or is for who looks closer, is left out.
void FitScreen(std::initializer_list<std::string_view> closer, Asker& asker,
               ResultSet& result) {
  if (!asker.for_screen()) return;
  if (asker.top == 0) asker.top = kTerminalRuns;
  if (!asker.only.empty()) return;
  std::erase_if(result.tables, [&](const Table& table) {
    return table.rows() == 0 || std::find(closer.begin(), closer.end(),
                                          table.name()) != closer.end();
  });
}

// --- add and import ---

struct AddedRow {
  std::string file, name;
  std::optional<std::string> run;
  std::string_view status;
  std::string why;
};

const RowColumns<AddedRow>& AddedColumns() {
  static const RowColumns<AddedRow> columns{
      "imported",
      "Recordings, and whether they are in the store now.",
      {{"file", ColumnType::kText, "Trace, or folder of ranks.",
        &AddedRow::file},
       {"name", ColumnType::kText, "Name of the run.", &AddedRow::name},
       {"run", ColumnType::kText, "Begin of its content's digest.",
        [](const AddedRow& row) { return Value(row.run); }, Shown::kHidden},
       {"status", ColumnType::kText,
        "added; same: it was there, and has the tags now; failed.",
        &AddedRow::status},
       {"why", ColumnType::kText, "Of what failed.", &AddedRow::why}}};
  return columns;
}

// One run that is to be added.
struct NewRun {
  std::string path;
  std::string name;  // empty: that of the file
  std::optional<int64_t> ordinal, recorded_ns;
  Tags tags;
};

// What of an error fits a cell.
std::string TextOf(const Error& error) {
  return error.what + (error.hint.empty() ? "" : "; " + error.hint);
}

constexpr const char* kCapturesFact = "captures";

// The recordings of one run, without name, tags and key. `captures`: of its
// replayed graphs.
Result<runstore::Record> Analyse(const std::string& path,
                                 const std::vector<std::string>& captures,
                                 Asker& asker,
                                 std::vector<std::string>& files) {
  runstore::Record record;
  {
    // Traces are closed before the next is read.
    analysis::Settings settings;
    settings.threads = asker.ThreadCount();
    engine::OpenOptions open = asker.Open();
    open.captures = captures;
    std::map<int64_t, std::shared_ptr<engine::Session>> ranks;
    if (HoldsRanks(path)) {
      LAMINA_ASSIGN(ranks, OpenRanks(path, open, asker, files));
    } else {
      LAMINA_ASSIGN(files, engine::FindTraces({path}));
      LAMINA_ASSIGN(ranks[0], asker.OpenTrace(files.front(), open));
    }
    std::vector<const analysis::Context*> contexts;
    for (const auto& [rank, session] : ranks) {
      LAMINA_ASSIGN(
          const analysis::Context* const context,
          session->ContextFor(tree::LinkMode::kAuto, false, settings));
      contexts.push_back(context);
    }
    LAMINA_ASSIGN(record, runstore::RecordOf(contexts));
  }
  for (const std::string& file : files) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (!error) record.bytes += size;
  }
  std::vector<std::string> content = files;
  content.insert(content.end(), captures.begin(), captures.end());
  LAMINA_ASSIGN(record.content, runstore::ContentOf(content));
  const auto whole = [](const std::string& name) {
    std::error_code error;
    const auto full = std::filesystem::absolute(name, error);
    return error ? name : full.lexically_normal().string();
  };
  record.source = whole(path);
  std::string& kept = record.environment[kCapturesFact];
  for (const std::string& capture : captures)
    kept += (kept.empty() ? "" : "\n") + whole(capture);
  if (kept.empty()) record.environment.erase(kCapturesFact);
  return record;
}

Result<bool> AddRun(const NewRun& given, bool git, Store& store, Asker& asker,
                    AddedRow& row) {
  std::vector<std::string> files;
  LAMINA_ASSIGN(runstore::Record record,
                Analyse(given.path, asker.captures, asker, files));
  record.name = given.name.empty() ? runstore::NameOf(given.path) : given.name;
  record.ordinal = given.ordinal;
  if (given.recorded_ns) record.recorded_ns = given.recorded_ns;
  record.tags = given.tags;
  if (git) record.tags.merge(runstore::CommitTags(files.front()));
  record.key = runstore::KeyOf(record);
  row.name = record.name;
  constexpr size_t kShown = 12;
  row.run = record.content.substr(0, kShown);
  return store.Add(record, runstore::UserName());
}

Result<Answer> AddRuns(const char* command, const std::vector<NewRun>& given,
                       bool git, const std::string& store_name, Asker& asker) {
  LAMINA_ASSIGN(Store store, OpenStore(store_name, Store::Mode::kCreate));
  std::vector<AddedRow> rows;
  size_t failed = 0, added = 0;
  for (const NewRun& one : given) {
    AddedRow& row = rows.emplace_back();
    row.file = one.path;
    row.name = one.name.empty() ? runstore::NameOf(one.path) : one.name;
    const Result<bool> is_new = AddRun(one, git, store, asker, row);
    if (is_new) {
      row.status = *is_new ? "added" : "same";
      added += *is_new;
      continue;
    }
    // A store that does not work fails for all that follow.
    if (given.size() == 1 || is_new.error().file == store.path() ||
        is_new.error().kind == ErrorKind::kCancelled)
      return Fail(is_new.error());
    row.status = "failed";
    row.why = TextOf(is_new.error());
    ++failed;
  }
  Document document = NewDocument(command, store.path());
  document.result.notes.push_back(
      MakeNote(failed > 0 ? Severity::kWarning : Severity::kVerdict, "imported",
               fmt::format("{} added, {} there before, {} failed.",
                           Counted(added, "run"), rows.size() - added - failed,
                           failed)));
  document.result.tables.push_back(AddedColumns().Make(rows));
  if (asker.for_screen() && asker.top == 0) asker.top = kTerminalRuns;
  Answer answer(std::move(document));
  answer.failed = failed > 0;
  return answer;
}

Status CheckCaptures(const Asker& asker) {
  for (const std::string& capture : asker.captures) {
    std::error_code error;
    if (std::filesystem::is_directory(capture, error)) {
      return Fail(UsageError("⟨capture⟩: '" + capture + "' is a folder",
                             "name the traces in it"));
    }
  }
  return {};
}

// Tags of files from a table: a header with the columns file, perhaps time and
// name, and tags.
Result<std::map<std::string, NewRun>> ReadTags(const std::string& path) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  LAMINA_ASSIGN(std::string text, ReadAll(path, kMostBytes));
  std::erase(text, '\r');
  const bool tabs = Contains(text.substr(0, text.find('\n')), "\t");
  std::vector<std::vector<std::string>> rows;
  if (tabs) {
    for (std::string_view line : SplitLines(text)) {
      if (line.empty()) continue;
      auto& row = rows.emplace_back();
      for (bool more = true; more;) {
        more = Contains(line, "\t");
        row.emplace_back(TakeUntil(line, '\t'));
      }
    }
  } else {
    CsvRows reader(text);
    while (reader.Next())
      rows.emplace_back(reader.fields().begin(), reader.fields().end());
  }
  std::map<std::string, NewRun> out;
  const auto is_file = [](const std::string& name) { return name == "file"; };
  if (rows.empty() || std::none_of(rows[0].begin(), rows[0].end(), is_file)) {
    return Fail(InputError(path, "has no column 'file'",
                           "its first line names the columns: file, time, and "
                           "tags, with tabs or commas between"));
  }
  for (size_t r = 1; r < rows.size(); ++r) {
    NewRun run;
    std::string name;
    for (size_t c = 0; c < rows[r].size() && c < rows[0].size(); ++c) {
      const std::string& column = rows[0][c];
      const std::string& value = rows[r][c];
      if (column == "file") {
        name = value;
      } else if (value.empty()) {
        continue;
      } else if (column == "name") {
        run.name = value;
      } else if (column == "time") {
        run.recorded_ns = runstore::ParseDate(value);
        if (!run.recorded_ns) {
          return Fail(InputError(
              path, fmt::format("line {}: '{}' is no time", r + 1, value),
              "seconds since 1970, or as 2026-11-27T05:42:00Z"));
        }
      } else if (column == "ordinal") {
        run.ordinal = ParseInt(value);
      } else {
        LAMINA_ASSIGN(const auto pair,
                      ParsePairs(path.c_str(), {column + "=" + value}));
        run.tags.insert(pair.begin(), pair.end());
      }
    }
    out.insert_or_assign(name, std::move(run));
  }
  return out;
}

struct ImportParams {
  std::string folder, tags, pattern, store;
  bool no_git = false;
};

Result<Answer> AskImport(const ImportParams& options, Asker& asker) {
  std::error_code none_there;
  if (!std::filesystem::is_directory(options.folder, none_there))
    return Fail(InputError(options.folder, "is no folder"));
  LAMINA_ASSIGN(std::vector<std::string> files,
                engine::FindTraces({options.folder}));
  std::map<std::string, NewRun> tags;
  std::string table = options.tags;
  const std::string usual =
      (std::filesystem::path(options.folder) / "runs.tsv").string();
  if (table.empty() && std::filesystem::exists(usual, none_there))
    table = usual;
  if (!table.empty()) {
    LAMINA_ASSIGN(tags, ReadTags(table));
  }
  std::vector<NewRun> runs;
  std::set<std::string> used;
  for (const std::string& file : files) {
    const std::filesystem::path path(file);
    const std::string name = path.filename().string();
    const std::string within =
        path.lexically_relative(options.folder).generic_string();
    if (!options.pattern.empty() &&
        fnmatch(options.pattern.c_str(), name.c_str(), 0) != 0)
      continue;
    NewRun run;
    for (const std::string& key : {within, name}) {
      const auto found = tags.find(key);
      if (found == tags.end()) continue;
      run = found->second;
      used.insert(key);
      break;
    }
    run.path = file;
    runs.push_back(std::move(run));
  }
  if (runs.empty()) {
    return Fail(InputError(options.folder, "has no trace of that name",
                           "look at ⟨pattern⟩"));
  }
  for (const auto& [file, run] : tags) {
    if (used.contains(file) || !options.pattern.empty()) continue;
    asker.Warn("tags_unused",
               fmt::format("{}: there is no file '{}'", EscapeTerminal(table),
                           EscapeTerminal(file)));
  }
  return AddRuns("runs import", runs, !options.no_git, options.store, asker);
}

struct AddParams {
  std::vector<std::string> traces, tags;
  std::string name, store;
  std::optional<int64_t> ordinal;
  bool no_git = false;
};

Result<Answer> AskAdd(const AddParams& options, Asker& asker) {
  LAMINA_TRY(CheckCaptures(asker));
  LAMINA_ASSIGN(const auto tags, ParsePairs("⟨tag⟩", options.tags));
  std::vector<NewRun> runs;
  for (const std::string& argument : options.traces) {
    if (argument == "-") {
      return Fail(UsageError("a run is not read from standard input (-)",
                             "its bytes say later whether it is the same"));
    }
    std::error_code none_there;
    std::vector<std::string> paths = {argument};
    // A folder is one run; a pattern is many.
    if (!std::filesystem::is_directory(argument, none_there)) {
      LAMINA_ASSIGN(paths, engine::FindTraces({argument}));
    }
    for (std::string& path : paths) {
      NewRun& run = runs.emplace_back();
      run.path = std::move(path);
      run.name = options.name;
      run.ordinal = options.ordinal;
      for (const auto& [name, value] : tags) run.tags[name] = value;
    }
  }
  if (runs.size() > 1 && (!options.name.empty() || options.ordinal)) {
    return Fail(UsageError("⟨name⟩ and ⟨ordinal⟩ are of one run",
                           "add one after the other"));
  }
  return AddRuns("runs add", runs, !options.no_git, options.store, asker);
}

// --- list and show ---

// The median of the class of units with most time; of one phase, or of all.
std::optional<int64_t> MedianOf(const Run& run,
                                std::optional<runs::Phase> phase) {
  const runstore::ClassRecord* most = nullptr;
  for (const auto& one : run.classes) {
    if (one.unit.units == 0 || (phase && one.phase != *phase)) continue;
    if (most == nullptr || one.share > most->share) most = &one;
  }
  return most == nullptr ? std::nullopt : std::optional(most->unit.p50_ns);
}

size_t UnitsOf(const Run& run) {
  size_t units = 0;
  for (const auto& one : run.classes) units += one.unit.units;
  return units;
}

std::string RecordedAt(const Run& run) {
  return runstore::DateText(run.TimeNs());
}

// Tags that any run has, at most 40, and the columns that they are.
std::vector<std::pair<std::string, std::string>> TagColumns(
    const std::vector<Run>& runs, const Schema& schema) {
  constexpr size_t kMost = 40;
  std::set<std::string> names;
  for (const Run& run : runs) {
    for (const auto& [name, value] : run.tags) names.insert(name);
  }
  std::vector<std::pair<std::string, std::string>> out;
  std::set<std::string> taken;
  for (const Column& column : schema.columns) taken.insert(column.name);
  for (const std::string& name : names) {
    std::string column = LowerCase(name);
    std::replace_if(
        column.begin(), column.end(),
        [](char c) { return !IsWordCharacter(c); }, '_');
    if (taken.contains(column)) column = "tag_" + column;
    if (out.size() == kMost || !taken.insert(column).second) continue;
    out.emplace_back(name, column);
  }
  return out;
}

Table RunsTable(const std::vector<Run>& runs,
                const std::map<int64_t, std::string>& baselines,
                const std::vector<std::string>& shown) {
  Schema schema{
      "runs",
      "Runs of the store, in the order of their series.",
      {{"run", ColumnType::kInt, "Number in the store."},
       {"name", ColumnType::kText, "Name."},
       {"recorded_at", ColumnType::kText,
        "When it was recorded, else added; UTC."},
       {"ordinal", ColumnType::kInt, "Place in its series, where given.",
        Shown::kHidden},
       {"key", ColumnType::kText, "Runs of one key form a series."},
       {"device", ColumnType::kText, "Name of the device."},
       {"units", ColumnType::kInt, "Steps or passes that are compared."},
       {"unit_us", ColumnType::kTime,
        "Median of the class of units with most time."},
       {"decode_us", ColumnType::kTime, "The same of decodes."},
       {"prefill_us", ColumnType::kTime, "The same of prefills."},
       {"baseline", ColumnType::kText, "Names of baselines that it is."},
       {"content", ColumnType::kText, "SHA-256 of the trace.",
        Shown::kHidden}}};
  const auto tags = TagColumns(runs, schema);
  for (const auto& [name, column] : tags) {
    const bool seen = name == "commit" || std::find(shown.begin(), shown.end(),
                                                    name) != shown.end();
    schema.columns.push_back({column, ColumnType::kText, "Tag of the run.",
                              seen ? Shown::kPlain : Shown::kHidden});
  }
  Table table(std::move(schema));
  for (const Run& run : runs) {
    const std::string recorded = RecordedAt(run);
    const auto baseline = baselines.find(run.id);
    std::vector<Value> cells = {
        run.id,
        run.name,
        recorded,
        run.ordinal,
        run.key,
        run.device,
        UnitsOf(run),
        MedianOf(run, std::nullopt),
        MedianOf(run, runs::Phase::kDecode),
        MedianOf(run, runs::Phase::kPrefill),
        baseline == baselines.end() ? Value() : Value(baseline->second),
        run.content};
    for (const auto& [name, column] : tags) {
      const auto tag = run.tags.find(name);
      cells.push_back(tag == run.tags.end() ? Value() : Value(tag->second));
    }
    table.AddRow(cells);
  }
  return table;
}

// Names of the baselines that hold, by run.
Result<std::map<int64_t, std::string>> LiveBaselines(Store& store) {
  LAMINA_ASSIGN(const auto baselines, store.Baselines());
  std::map<int64_t, std::string> out;
  for (const runstore::Baseline& one : baselines) {
    if (one.until_ns) continue;
    std::string& names = out[one.run];
    names += (names.empty() ? "" : ", ") + one.name;
  }
  return out;
}

struct ListParams {
  std::string store;
  std::vector<std::string> where, columns;
};

Result<Answer> AskList(const ListParams& options, Asker& asker) {
  LAMINA_ASSIGN(Store store, OpenStore(options.store, Store::Mode::kExisting));
  LAMINA_ASSIGN(const auto pairs, ParsePairs("⟨where⟩", options.where));
  LAMINA_ASSIGN(const std::vector<Run> runs, store.Runs(pairs));
  LAMINA_ASSIGN(const auto baselines, LiveBaselines(store));
  Document document = NewDocument("runs list", store.path());
  document.result.tables.push_back(RunsTable(runs, baselines, options.columns));
  if (asker.for_screen() && asker.top == 0) asker.top = kTerminalRuns;
  return Answer(std::move(document));
}

Table FactsTable(const Run& run, const Tags& environment) {
  Table table({"run",
               "What is known of a run.",
               {{"name", ColumnType::kText, "What."},
                {"value", ColumnType::kText, "How it is."}}});
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) table.Add(name, value);
  };
  const auto number = [](const std::optional<int64_t>& n) {
    return n ? std::to_string(*n) : std::string();
  };
  add("run", std::to_string(run.id));
  add("name", run.name);
  add("content", run.content);
  add("source", run.source);
  add("format", run.format);
  add("bytes", std::to_string(run.bytes));
  add("recorded_at",
      run.recorded_ns ? runstore::DateText(*run.recorded_ns) : "");
  add("added_at", runstore::DateText(run.added_ns));
  add("added_by", run.added_by);
  add("ordinal", number(run.ordinal));
  add("key", run.key);
  add("model", run.model);
  add("device", run.device);
  add("type", run.type);
  add("ranks", std::to_string(run.ranks));
  add("world", number(run.world));
  add("lamina", run.lamina);
  for (const auto& [name, value] : run.tags) add("tag " + name, value);
  for (const auto& [name, value] : environment) add("env " + name, value);
  return table;
}

struct ShowParams {
  std::string run, store;
};

Result<Answer> AskShow(const ShowParams& options, Asker& asker) {
  LAMINA_ASSIGN(Store store, OpenStore(options.store, Store::Mode::kExisting));
  LAMINA_ASSIGN(const Run run, store.Find(options.run));
  LAMINA_ASSIGN(const Tags environment, store.EnvironmentOf(run.id));
  LAMINA_ASSIGN(const runs::Account account, store.AccountOf(run.id));
  Document document = NewDocument("runs show", store.path());
  auto& tables = document.result.tables;
  tables.push_back(FactsTable(run, environment));
  Table classes(
      {"run_units",
       "Units of equal load.",
       {{"phase", ColumnType::kText, "train, eval, prefill, decode ..."},
        {"class", ColumnType::kText, "Their load."},
        {"units", ColumnType::kInt, "Units that are compared."},
        {"left_out", ColumnType::kInt, "Units that are not."},
        {"share_percent", ColumnType::kReal, "Share of the time.",
         Shown::kPercent},
        {"p10_us", ColumnType::kTime, "A tenth of the units takes less."},
        {"unit_us", ColumnType::kTime, "Median."},
        {"p90_us", ColumnType::kTime, "A tenth of the units takes more."},
        {"kernel_time_us", ColumnType::kTime,
         "Median of the sums of device work."}}});
  for (const auto& one : run.classes) {
    classes.Add(runs::PhaseName(one.phase), one.name, one.unit.units,
                one.left_out, 100 * one.share, one.unit.p10_ns, one.unit.p50_ns,
                one.unit.p90_ns, one.kernel_time.p50_ns);
  }
  tables.push_back(std::move(classes));
  Table parts(
      {"run_parts",
       "Mean time of a unit by half of a layer and family.",
       {{"phase", ColumnType::kText, "Phase of the units."},
        {"half", ColumnType::kText, "attention, feed_forward, outside."},
        {"family", ColumnType::kText,
         "Family of device work, idle, or overlap."},
        {"kernels", ColumnType::kReal, "Device events per unit."},
        {"time_us", ColumnType::kTime, "Per unit."}}});
  for (const runs::Part& one : account.parts) {
    parts.Add(runs::PhaseName(one.phase),
              one.half.empty() ? Value() : Value(one.half), one.family,
              one.kernels, std::llround(one.ns));
  }
  tables.push_back(std::move(parts));
  Table modules({"run_modules",
                 "Own time of a unit by class of modules.",
                 {{"phase", ColumnType::kText, "Phase of the units."},
                  {"path", ColumnType::kText, "Classes from the root."},
                  {"instances", ColumnType::kInt, "Modules of it."},
                  {"time_us", ColumnType::kTime, "Per unit."}}});
  for (const runs::ModulePart& one : account.modules)
    modules.Add(runs::PhaseName(one.phase), one.path, one.instances,
                std::llround(one.ns));
  tables.push_back(std::move(modules));
  Table kernels({"run_kernels",
                 "Time of a unit by kernel: those of most time, and the rest.",
                 {{"phase", ColumnType::kText, "Phase of the units."},
                  {"kernel", ColumnType::kText, "Name."},
                  {"op", ColumnType::kText, "What launched it."},
                  {"family", ColumnType::kText, "Its family."},
                  {"calls", ColumnType::kReal, "Per unit."},
                  {"time_us", ColumnType::kTime, "Per unit."}}});
  for (const runs::KernelPart& one : account.kernels)
    kernels.Add(runs::PhaseName(one.phase), one.name,
                one.op.empty() ? Value() : Value(one.op), one.family, one.calls,
                std::llround(one.ns));
  tables.push_back(std::move(kernels));
  FitScreen({}, asker, document.result);
  return Answer(std::move(document));
}

// --- trend, check and compare ---

struct TrendParams {
  std::string store, metric;
  std::vector<std::string> where;
  uint32_t last = 0;
  double min_effect = 1;  // percent
};

Result<Answer> AskTrend(const TrendParams& options, Asker& asker) {
  LAMINA_ASSIGN(Store store, OpenStore(options.store, Store::Mode::kExisting));
  LAMINA_ASSIGN(const std::vector<Run> runs, RunsOf(store, options.where));
  Document document = NewDocument("runs trend", store.path());
  LAMINA_ASSIGN(document.result, runstore::Trend(store, runs,
                                                 {options.metric, options.last,
                                                  options.min_effect / 100}));
  if (document.result.Find("trend")->rows() == 0) {
    return Fail(UsageError("no run has a value of '" + options.metric + "'",
                           "⟨lamina⟩ runs show latest lists parts, modules and "
                           "ops"));
  }
  FitScreen({"trend_points"}, asker, document.result);
  return Answer(std::move(document));
}

Status UseDecision(Store& store, const Run& run, const Run& against,
                   Answer& answer) {
  LAMINA_ASSIGN(const auto decision, store.DecisionOn(run.id, against.id));
  if (decision && SayDecision(*decision, answer.document.result))
    answer.failed = false;
  return {};
}

struct CheckParams {
  std::string store, run, metric, against;
  std::string fail_above = "2%", unknown = "pass", suspect = "pass";
  std::vector<std::string> where;
  uint32_t window = 20;
};

Result<Answer> AskCheck(const CheckParams& options, Asker& asker) {
  LAMINA_ASSIGN(const auto limit,
                ParsePercent("⟨fail_above⟩", options.fail_above));
  LAMINA_ASSIGN(Store store, OpenStore(options.store, Store::Mode::kExisting));
  LAMINA_ASSIGN(std::vector<Run> runs, RunsOf(store, options.where));
  if (!options.run.empty()) {
    LAMINA_ASSIGN(const Run named, store.Find(options.run));
    const auto found =
        std::find_if(runs.begin(), runs.end(),
                     [&](const Run& run) { return run.id == named.id; });
    if (found == runs.end()) {
      return Fail(UsageError("run '" + options.run + "' is not among them",
                             "look at ⟨where⟩"));
    }
    runs.erase(found + 1, runs.end());
  }
  runstore::CheckOptions check;
  check.metric = options.metric;
  check.window = options.window;
  check.fail_above = limit.value_or(0.02);
  std::optional<Run> against;
  if (!options.against.empty()) {
    LAMINA_ASSIGN(against, store.Find(options.against));
    check.against = &*against;
  }
  LAMINA_ASSIGN(runstore::Checked checked, runstore::Check(store, runs, check));
  Document document = NewDocument("runs check", store.path());
  document.result = std::move(checked.result);
  FitScreen({"diff_verdict", "diff_units", "diff_left_out", "diff_pairs",
             "diff_comparable"},
            asker, document.result);
  Answer answer(std::move(document));
  answer.failed = checked.verdict == runs::Verdict::kFail ||
                  (checked.suspect && options.suspect == "fail") ||
                  (checked.verdict == runs::Verdict::kUnknown &&
                   !checked.suspect && options.unknown == "fail");
  if (against) LAMINA_TRY(UseDecision(store, runs.back(), *against, answer));
  // Of a change in a series what was decided about its first run.
  for (const runstore::Decision& one : checked.decisions)
    SayDecision(one, answer.document.result);
  return answer;
}

struct CompareParams {
  std::vector<std::string> runs;
  std::string store, fail_above, run_noise, unknown = "pass", measure = "unit";
};

Result<Answer> AskCompare(const CompareParams& options, Asker& asker) {
  runs::Options how;
  LAMINA_ASSIGN(how.fail_above,
                ParsePercent("⟨fail_above⟩", options.fail_above));
  LAMINA_ASSIGN(how.run_noise, ParsePercent("⟨run_noise⟩", options.run_noise));
  how.measure = options.measure == "kernel_time" ? runs::Measure::kKernelTime
                : options.measure == "busy"      ? runs::Measure::kBusy
                                                 : runs::Measure::kUnit;
  LAMINA_ASSIGN(Store store, OpenStore(options.store, Store::Mode::kExisting));
  LAMINA_ASSIGN(const Run a, store.Find(options.runs[0]));
  LAMINA_ASSIGN(const Run b, store.Find(options.runs[1]));
  if (!how.run_noise) {
    LAMINA_ASSIGN(how.run_noise, runstore::MeasuredNoise(store, a));
    how.noise_from = runs::Options::NoiseFrom::kStore;
  }
  LAMINA_ASSIGN(const runs::KeptSide side_a, store.SideOf(a));
  LAMINA_ASSIGN(const runs::KeptSide side_b, store.SideOf(b));
  runs::Compared compared = runs::CompareKept(side_a, side_b, how);
  Document document = NewDocument("runs compare", store.path());
  document.result = std::move(compared.result);
  FitScreen({"diff_units", "diff_left_out", "diff_pairs"}, asker,
            document.result);
  Answer answer(std::move(document));
  answer.failed = compared.verdict == runs::Verdict::kFail ||
                  (compared.verdict == runs::Verdict::kUnknown &&
                   options.unknown == "fail");
  LAMINA_TRY(UseDecision(store, b, a, answer));
  return answer;
}

}  // namespace

bool IsKeptRun(const std::string& input) {
  return input.starts_with("run:") || input.starts_with("baseline:");
}

namespace {

// The run with the content of these files; nothing: it was not added.
Result<std::optional<Run>> RunOfContent(Store& store,
                                        const std::string& content) {
  LAMINA_ASSIGN(std::vector<Run> runs, store.Runs({}));
  for (size_t i = runs.size(); i-- > 0;) {
    if (runs[i].content == content) return std::move(runs[i]);
  }
  return std::nullopt;
}

// Of one pair of runs of the store what is known of it.
Result<KnownPair> KnownOf(Store& store,
                          const std::array<std::optional<Run>, 2>& runs) {
  KnownPair out;
  for (const auto& run : runs) {
    if (!run || out.run_noise) continue;
    LAMINA_ASSIGN(out.run_noise, runstore::MeasuredNoise(store, *run));
  }
  if (runs[0] && runs[1]) {
    LAMINA_ASSIGN(out.decision, store.DecisionOn(runs[1]->id, runs[0]->id));
  }
  return out;
}

}  // namespace

Result<KnownPair> KnownPairOf(const DiffParams& options, Asker& asker) {
  LAMINA_ASSIGN(Store store, OpenStore(options.store, Store::Mode::kExisting));
  std::array<std::optional<Run>, 2> runs;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (options.traces[i] == "-") continue;
    LAMINA_ASSIGN(auto files, engine::FindTraces({options.traces[i]}));
    const auto captures = OpenSide(options, i, asker).captures;
    files.insert(files.end(), captures.begin(), captures.end());
    LAMINA_ASSIGN(const auto content, runstore::ContentOf(files));
    LAMINA_ASSIGN(runs[i], RunOfContent(store, content));
  }
  return KnownOf(store, runs);
}

Result<Answer> CompareWithKept(const DiffParams& options, runs::Options units,
                               Asker& asker) {
  if (options.traces.size() != 2) {
    return Fail(UsageError("runs of a store are compared two by two",
                           "⟨lamina⟩ diff baseline:main TRACE"));
  }
  LAMINA_ASSIGN(Store store, OpenStore(options.store, Store::Mode::kExisting));
  std::array<runs::KeptSide, 2> sides;
  std::array<std::optional<Run>, 2> runs;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const std::string& input = options.traces[i];
    constexpr std::string_view kRun = "run:";
    if (IsKeptRun(input)) {
      LAMINA_ASSIGN(runs[i], store.Find(input.starts_with(kRun)
                                            ? input.substr(kRun.size())
                                            : input));
      LAMINA_ASSIGN(sides[i], store.SideOf(*runs[i]));
      continue;
    }
    std::vector<std::string> files;
    LAMINA_ASSIGN(
        runstore::Record record,
        Analyse(input, OpenSide(options, i, asker).captures, asker, files));
    LAMINA_ASSIGN(runs[i], RunOfContent(store, record.content));
    sides[i] = runstore::SideOf(std::move(record));
  }
  LAMINA_ASSIGN(const KnownPair known, KnownOf(store, runs));
  if (!units.run_noise) {
    units.run_noise = known.run_noise;
    units.noise_from = runs::Options::NoiseFrom::kStore;
  }
  runs::Compared compared = runs::CompareKept(sides[0], sides[1], units);
  Document document;
  document.command = "diff";
  document.inputs = options.traces;
  document.result = std::move(compared.result);
  FitScreen({"diff_units", "diff_left_out", "diff_pairs", "diff_comparable"},
            asker, document.result);
  Answer answer(std::move(document));
  answer.failed = compared.verdict == runs::Verdict::kFail ||
                  (compared.verdict == runs::Verdict::kUnknown &&
                   options.unknown == "fail");
  if (known.decision && SayDecision(*known.decision, answer.document.result))
    answer.failed = false;
  return answer;
}

namespace {

// --- judge ---

struct JudgeParams {
  std::vector<std::string> command, tags;
  std::string store, against, metric = "unit", fail_above = "2%";
  uint32_t repeat = 5, limit_s = 3600;
  bool for_git_bisect = false;
};

// What git bisect run takes for "cannot be told".
constexpr int kSkip = 125;

// Runs the command once and adds what it recorded. Errors: it failed, or wrote
// no trace.
Result<Run> Record(const JudgeParams& options, const Tags& tags, Store& store,
                   Asker& asker) {
  LAMINA_ASSIGN(const Leftover folder, MakeTemporaryFolder());
  const std::string& name = options.command.front();
  std::vector<std::string> words = options.command;
  if (!Contains(name, "/")) {
    const auto program = FindProgram(name);
    if (!program) return Fail(InputError(name, "there is no such program"));
    words.front() = *program;
  }
  setenv("LAMINA_OUT", folder.path().c_str(), 1);
  LAMINA_ASSIGN(const ChildResult ended,
                RunChild(words, "", std::chrono::seconds(options.limit_s)));
  if (ended.timed_out || ended.exit_status != 0) {
    constexpr size_t kShown = 400;
    const std::string& said = ended.err.empty() ? ended.out : ended.err;
    return Fail(InputError(
        name,
        ended.timed_out ? fmt::format("took more than {} s", options.limit_s)
        : ended.exit_status < 0
            ? std::string("was ended by a signal")
            : fmt::format("ended with status {}", ended.exit_status),
        said.substr(said.size() - std::min(said.size(), kShown))));
  }
  const auto traces = engine::FindTraces({folder.path()});
  if (!traces || traces->empty()) {
    return Fail(InputError(name, "wrote no trace",
                           "it must write into the folder of $LAMINA_OUT"));
  }
  NewRun run;
  run.path = traces->size() == 1 ? traces->front() : folder.path();
  run.name = runstore::NameOf(traces->front());
  run.recorded_ns = runstore::NowNs();
  run.tags = tags;
  AddedRow row;
  LAMINA_TRY(AddRun(run, false, store, asker, row));
  return store.Find(*row.run);
}

// With those of its commit that are in the store already.
Result<std::vector<Run>> OfCommit(Store& store, const Run& run,
                                  const Run& against) {
  std::vector<Run> out;
  const auto commit = run.tags.find("commit");
  if (commit != run.tags.end()) {
    LAMINA_ASSIGN(out, store.Runs({{"commit", commit->second}}));
    std::erase_if(out, [&](const Run& other) {
      return other.key != run.key || other.id == against.id ||
             other.id == run.id;
    });
  }
  out.push_back(run);
  return out;
}

Result<Judgement> AskJudge(const JudgeParams& options, Asker& asker) {
  LAMINA_ASSIGN(const auto limit,
                ParsePercent("⟨fail_above⟩", options.fail_above));
  const std::set<std::string> metrics = {"unit",   "kernel", "busy",
                                         "train",  "eval",   "prefill",
                                         "decode", "mixed",  "pass"};
  if (!metrics.contains(options.metric)) {
    return Fail(UsageError(
        "⟨metric⟩: '" + options.metric + "' is not compared by units",
        "unit, kernel, busy, or a phase"));
  }
  LAMINA_ASSIGN(const auto pairs, ParsePairs("⟨tag⟩", options.tags));
  Tags tags(pairs.begin(), pairs.end());
  tags.merge(runstore::CommitTags("./trace"));
  LAMINA_ASSIGN(Store store, OpenStore(options.store, Store::Mode::kExisting));
  LAMINA_ASSIGN(const Run against, store.Find(options.against));
  Judgement out;
  out.document = NewDocument("runs judge", store.path());
  for (uint32_t i = 0; i < options.repeat; ++i) {
    const Result<Run> run = Record(options, tags, store, asker);
    if (!run) {
      if (!options.for_git_bisect || run.error().kind == ErrorKind::kUsage)
        return Fail(run.error());
      out.document.result = {};
      out.document.result.notes.push_back(
          MakeNote(Severity::kWarning, "not_recorded", run.error().ToString()));
      out.status = kSkip;
      return out;
    }
    LAMINA_ASSIGN(const auto recordings, OfCommit(store, *run, against));
    LAMINA_ASSIGN(runstore::Checked judged,
                  runstore::Judge(store, against, recordings, options.metric,
                                  limit.value_or(0.02)));
    out.document.result = std::move(judged.result);
    out.status =
        judged.verdict == runs::Verdict::kFail ? kCheckFailed
        : judged.verdict == runs::Verdict::kPass || !options.for_git_bisect
            ? kFine
            : kSkip;
    LAMINA_ASSIGN(const auto decision, store.DecisionOn(run->id, against.id));
    if (decision && SayDecision(*decision, out.document.result))
      out.status = kFine;
    if (judged.verdict != runs::Verdict::kUnknown) break;
  }
  FitScreen({"diff_verdict", "diff_units", "diff_left_out", "diff_pairs",
             "diff_comparable"},
            asker, out.document.result);
  return out;
}

// --- baselines and prune ---

struct BaselineParams {
  std::string store, name, run, reason;
};

Result<Answer> BaselineAnswer(const char* command, Store& store,
                              const std::string& only) {
  LAMINA_ASSIGN(const auto baselines, store.Baselines());
  Table table({"baselines",
               "Runs that others are held against, the newest first.",
               {{"name", ColumnType::kText, "Name of the baseline."},
                {"run", ColumnType::kInt, "Number of its run."},
                {"run_name", ColumnType::kText, "Name of its run."},
                {"set_at", ColumnType::kText, "Since when; UTC."},
                {"set_by", ColumnType::kText, "Who set it."},
                {"reason", ColumnType::kText, "Why."},
                {"until", ColumnType::kText, "Until when; empty: it holds."}}});
  for (const runstore::Baseline& one : baselines) {
    if (!only.empty() && one.name != only) continue;
    const std::string set = runstore::DateText(one.set_ns);
    const std::string until =
        one.until_ns ? runstore::DateText(*one.until_ns) : "";
    table.Add(one.name, one.run, one.run_name, set, one.set_by, one.reason,
              one.until_ns ? Value(until) : Value());
  }
  if (!only.empty() && table.rows() == 0) {
    return Fail(UsageError("there is no baseline '" + only + "'",
                           "⟨lamina⟩ runs baseline list lists them"));
  }
  Document document = NewDocument(command, store.path());
  document.result.tables.push_back(std::move(table));
  return Answer(std::move(document));
}

struct DecideParams {
  std::string store, run, against, verdict, reason;
};

Result<Answer> AskDecide(const DecideParams& options) {
  LAMINA_ASSIGN(Store store, OpenStore(options.store, Store::Mode::kExisting));
  LAMINA_ASSIGN(const Run run, store.Find(options.run));
  LAMINA_ASSIGN(const Run against, store.Find(options.against));
  if (run.id == against.id) {
    return Fail(UsageError("both are run '" + run.name + "'",
                           "⟨against⟩ names the run before"));
  }
  LAMINA_TRY(store.Decide(run, against, options.verdict == "accept",
                          runstore::UserName(), options.reason));
  LAMINA_ASSIGN(const auto decisions, store.Decisions());
  Table table({"decisions",
               "What was decided about runs, the newest first.",
               {{"run", ColumnType::kInt, "Number of the run."},
                {"run_name", ColumnType::kText, "Its name."},
                {"against", ColumnType::kInt,
                 "Number of the run that it is held against."},
                {"against_name", ColumnType::kText, "Name of that."},
                {"status", ColumnType::kText, "accepted or rejected."},
                {"reason", ColumnType::kText, "Why."},
                {"decided_by", ColumnType::kText, "Who decided."},
                {"decided_at", ColumnType::kText, "When; UTC."}}});
  for (const runstore::Decision& one : decisions) {
    const std::string at = runstore::DateText(one.decided_ns);
    table.Add(one.run, one.run_name, one.against, one.against_name,
              one.accepted ? "accepted" : "rejected", one.reason, one.by, at);
  }
  Document document = NewDocument("runs decide", store.path());
  document.result.tables.push_back(std::move(table));
  return Answer(std::move(document));
}

struct RecomputeParams {
  std::string store;
  std::vector<std::string> runs, where;
  bool all = false;
};

struct RecomputedRow {
  int64_t run;
  std::string_view name, status;
  std::string why;
};

const RowColumns<RecomputedRow>& RecomputedColumns() {
  static const RowColumns<RecomputedRow> columns{
      "recomputed",
      "Runs whose numbers were made anew from their traces.",
      {{"run", ColumnType::kInt, "Number in the store.", &RecomputedRow::run},
       {"name", ColumnType::kText, "Name.", &RecomputedRow::name},
       {"status", ColumnType::kText,
        "recomputed; current: of this version already; no_trace: its trace is "
        "gone, or another one by now; failed.",
        &RecomputedRow::status},
       {"why", ColumnType::kText, "Of what was not done.",
        &RecomputedRow::why}}};
  return columns;
}

// "recomputed", or why not.
Result<std::string_view> Recompute(const Run& run, Store& store, Asker& asker,
                                   std::string& why) {
  std::error_code error;
  if (!std::filesystem::exists(run.source, error)) {
    why = run.source + " is not there";
    return "no_trace";
  }
  LAMINA_ASSIGN(const Tags environment, store.EnvironmentOf(run.id));
  std::vector<std::string> captures;
  if (const auto kept = environment.find(kCapturesFact);
      kept != environment.end()) {
    for (const std::string_view line : SplitLines(kept->second))
      captures.emplace_back(line);
  }
  std::vector<std::string> files;
  LAMINA_ASSIGN(runstore::Record record,
                Analyse(run.source, captures, asker, files));
  if (record.content != run.content) {
    why = run.source + " has another content by now";
    return "no_trace";
  }
  record.tags = run.tags;
  record.key = runstore::KeyOf(record);
  LAMINA_TRY(store.Replace(run, record));
  return "recomputed";
}

Result<Answer> AskRecompute(const RecomputeParams& options, Asker& asker) {
  LAMINA_ASSIGN(Store store, OpenStore(options.store, Store::Mode::kExisting));
  std::vector<Run> runs;
  for (const std::string& word : options.runs) {
    LAMINA_ASSIGN(Run run, store.Find(word));
    runs.push_back(std::move(run));
  }
  const bool named = !runs.empty();
  if (!named) {
    LAMINA_ASSIGN(runs, RunsOf(store, options.where));
  }
  std::vector<RecomputedRow> rows;
  size_t done = 0, failed = 0;
  for (const Run& run : runs) {
    RecomputedRow& row = rows.emplace_back();
    row.run = run.id;
    row.name = run.name;
    if (!named && !options.all && run.analysis == runstore::kAnalysis) {
      row.status = "current";
      continue;
    }
    const auto status = Recompute(run, store, asker, row.why);
    if (!status) {
      if (status.error().file == store.path() ||
          status.error().kind == ErrorKind::kCancelled)
        return Fail(status.error());
      row.why = TextOf(status.error());
    }
    row.status = status ? *status : "failed";
    done += row.status == "recomputed";
    failed += row.status != "recomputed";
  }
  Document document = NewDocument("runs recompute", store.path());
  document.result.notes.push_back(MakeNote(
      failed > 0 ? Severity::kWarning : Severity::kVerdict, "recomputed",
      fmt::format("{} made anew, {} of this version already, {} not possible.",
                  Counted(done, "run"), rows.size() - done - failed, failed)));
  document.result.tables.push_back(RecomputedColumns().Make(rows));
  FitScreen({}, asker, document.result);
  Answer answer(std::move(document));
  answer.failed = failed > 0;
  return answer;
}

struct PruneParams {
  std::string store, older;
  std::vector<std::string> where;
  std::optional<int64_t> keep;
  bool dry_run = false;
};

// Days of "90d" or "90".
std::optional<double> ParseDays(std::string text) {
  if (text.ends_with('d')) text.pop_back();
  const auto days = ParseDouble(text);
  constexpr double kMost = 100'000;
  return days && *days >= 0 && *days <= kMost ? days : std::nullopt;
}

Result<Answer> AskPrune(const PruneParams& options, Asker& asker) {
  if (options.keep.has_value() == !options.older.empty()) {
    return Fail(UsageError("say which runs go: either ⟨keep⟩ or ⟨older⟩",
                           "⟨lamina⟩ runs prune --keep 500 --dry-run"));
  }
  const auto days = ParseDays(options.older);
  if (!options.older.empty() && !days) {
    return Fail(UsageError("⟨older⟩: '" + options.older + "' is no age",
                           "for example 90d"));
  }
  LAMINA_ASSIGN(Store store, OpenStore(options.store, Store::Mode::kExisting));
  LAMINA_ASSIGN(const std::vector<Run> runs, RunsOf(store, options.where));
  LAMINA_ASSIGN(const auto baselines, LiveBaselines(store));
  LAMINA_ASSIGN(const auto decisions, store.Decisions());
  std::set<std::string> keys;
  std::set<int64_t> kept;
  for (const runstore::Decision& one : decisions)
    kept.insert({one.run, one.against});
  for (size_t i = runs.size(); i-- > 0;) {
    if (keys.insert(runs[i].key).second || baselines.contains(runs[i].id))
      kept.insert(runs[i].id);
  }
  constexpr double kDayNs = 86'400e9;
  const int64_t limit =
      runstore::NowNs() - static_cast<int64_t>(days.value_or(0) * kDayNs);
  for (size_t i = runs.size(); i-- > 0;) {
    const bool stays = options.keep
                           ? kept.size() < static_cast<size_t>(*options.keep)
                           : runs[i].TimeNs() >= limit;
    if (stays) kept.insert(runs[i].id);
  }
  std::vector<int64_t> gone;
  Table table({"pruned",
               "Runs that are removed from the store.",
               {{"run", ColumnType::kInt, "Number in the store."},
                {"name", ColumnType::kText, "Name."},
                {"recorded_at", ColumnType::kText,
                 "When it was recorded, else added; UTC."},
                {"key", ColumnType::kText, "Key of its series."},
                {"status", ColumnType::kText,
                 "removed; would_go: it was only asked."}}});
  for (const Run& run : runs) {
    if (kept.contains(run.id)) continue;
    gone.push_back(run.id);
    const std::string recorded = RecordedAt(run);
    table.Add(run.id, run.name, recorded, run.key,
              options.dry_run ? "would_go" : "removed");
  }
  if (!options.dry_run && !gone.empty()) LAMINA_TRY(store.Remove(gone));
  Document document = NewDocument("runs prune", store.path());
  document.result.notes.push_back(MakeNote(
      Severity::kVerdict, "pruned",
      fmt::format(
          "{} {}, {} {}. Baselines, runs of decisions and the newest run of "
          "each key always stay.",
          Counted(gone.size(), "run"), options.dry_run ? "would go" : "removed",
          runs.size() - gone.size(), options.dry_run ? "would stay" : "left")));
  document.result.tables.push_back(std::move(table));
  FitScreen({}, asker, document.result);
  return Answer(std::move(document));
}

}  // namespace

// --- descriptions ---

Body DescribeRunsAdd(Description& args, Asker& asker) {
  auto options = std::make_shared<AddParams>();
  args.Add("traces", options->traces,
           "Traces, each a run; a folder is the ranks of one run, a pattern "
           "stands for many traces")
      .Required();
  AddStoreTo(args, options->store);
  args.Add("--name", options->name,
           "Name of the run (default: that of the file)");
  args.Add("--tag", options->tags,
           "A tag of the run, as commit=c02e6f8; may be repeated. model and "
           "config separate series")
      .OneWord()
      .ValueName("NAME=VALUE");
  args.Add("--ordinal", options->ordinal,
           "Place in the series (default: by the time of recording)");
  args.Flag("--no-git", options->no_git,
            "No commit and branch of the work tree of git that holds the "
            "trace, nor of the variables of a CI service");
  asker.AddCapturesTo(args);
  return [options, &asker] { return AskAdd(*options, asker); };
}

Body DescribeRunsImport(Description& args, Asker& asker) {
  auto options = std::make_shared<ImportParams>();
  args.Add("folder", options->folder, "Every trace below it becomes a run")
      .Required();
  AddStoreTo(args, options->store);
  args.Add("--tags", options->tags,
           "Table of tags, with tabs or commas: its first line names the "
           "columns file, perhaps time, name and ordinal, and tags (default: "
           "runs.tsv in the folder)")
      .ValueName("FILE");
  args.Add("--pattern", options->pattern,
           "Only traces of such names, as '*.json.gz'");
  args.Flag("--no-git", options->no_git,
            "No commit and branch of the work tree of git that holds the "
            "traces, nor of the variables of a CI service");
  return [options, &asker] { return AskImport(*options, asker); };
}

Body DescribeRunsList(Description& args, Asker& asker) {
  auto options = std::make_shared<ListParams>();
  AddStoreTo(args, options->store);
  AddWhereTo(args, options->where);
  args.Add("--columns", options->columns,
           "Tags that a terminal shows besides commit; files hold all")
      .SplitAtCommas();
  return [options, &asker] { return AskList(*options, asker); };
}

Body DescribeRunsShow(Description& args, Asker& asker) {
  auto options = std::make_shared<ShowParams>();
  args.Add("run", options->run,
           "Number, name (the newest of it), begin of the content's digest, "
           "latest, or baseline:NAME")
      .Required();
  AddStoreTo(args, options->store);
  return [options, &asker] { return AskShow(*options, asker); };
}

constexpr const char* kMetrics =
    "What is looked at: unit, a phase (decode, prefill ...), kernel, busy, "
    "idle, part:HALF/FAMILY, module:CLASS or op:NAME (default: unit, or the "
    "phases of a server)";

Body DescribeRunsTrend(Description& args, Asker& asker) {
  auto options = std::make_shared<TrendParams>();
  AddStoreTo(args, options->store);
  args.Add("--metric", options->metric, kMetrics);
  AddWhereTo(args, options->where);
  args.Add("--last", options->last, "Only so many runs of each key");
  args.Add("--min-effect", options->min_effect,
           "Changes below this many percent are none")
      .Within(0, 100)
      .ShowDefault();
  return [options, &asker] { return AskTrend(*options, asker); };
}

Body DescribeRunsCompare(Description& args, Asker& asker) {
  auto options = std::make_shared<CompareParams>();
  args.Add("runs", options->runs,
           "The run before and after: number, name, begin of the content's "
           "digest, latest, or baseline:NAME")
      .Required()
      .Count(2, 2);
  AddStoreTo(args, options->store);
  args.Add("--fail-above", options->fail_above,
           "Exit with 1 when a unit of the second surely takes more than this "
           "share longer: 3%");
  args.Add("--unknown", options->unknown,
           "Whether a gate that the units cannot decide passes or fails")
      .OneOf({"pass", "fail"})
      .ShowDefault();
  args.Add("--measure", options->measure,
           "What is compared of a unit: the unit itself, the sum of its device "
           "work, or the time in which the device was busy")
      .OneOf({"unit", "kernel_time", "busy"})
      .ShowDefault();
  args.Add("--run-noise", options->run_noise,
           "What recordings of one program differ by, one standard deviation "
           "(default: measured, where 5 runs of the key are there, else 0.5%)");
  return [options, &asker] { return AskCompare(*options, asker); };
}

Body DescribeRunsCheck(Description& args, Asker& asker) {
  auto options = std::make_shared<CheckParams>();
  args.Add("run", options->run,
           "The run that is judged, with those before it (default: the "
           "newest)");
  AddStoreTo(args, options->store);
  args.Add("--metric", options->metric, kMetrics);
  AddWhereTo(args, options->where);
  args.Add("--fail-above", options->fail_above,
           "Exit with 1 when the newest runs surely take more than this share "
           "longer than those before")
      .ShowDefault();
  args.Add("--window", options->window,
           "A change so many runs ago is still new, and so many runs before it "
           "are held against")
      .Whole(5, 10'000)
      .ShowDefault();
  args.Add("--against", options->against,
           "Hold the run against this one, as baseline:main, in place of those "
           "before");
  args.Add("--unknown", options->unknown,
           "Whether a check that cannot be decided passes or fails")
      .OneOf({"pass", "fail"})
      .ShowDefault();
  args.Add("--suspect", options->suspect,
           "Whether one slow run alone passes or fails")
      .OneOf({"pass", "fail"})
      .ShowDefault();
  return [options, &asker] { return AskCheck(*options, asker); };
}

std::function<Result<Judgement>()> DescribeRunsJudge(Description& args,
                                                     Asker& asker) {
  auto options = std::make_shared<JudgeParams>();
  args.Add("command", options->command,
           "What records a trace into the folder of $LAMINA_OUT, behind --")
      .Required();
  AddStoreTo(args, options->store);
  args.Add("--against", options->against,
           "The run that it is held against, as baseline:main")
      .Required();
  args.Add("--metric", options->metric,
           "What is compared: unit, kernel, busy, or a phase (decode ...)")
      .ShowDefault();
  args.Add("--fail-above", options->fail_above,
           "Exit with 1 when a unit surely takes more than this share longer")
      .ShowDefault();
  args.Add("--repeat", options->repeat,
           "Recordings at most, until the verdict is sure")
      .Whole(1, 1000)
      .ShowDefault();
  args.Add("--time-limit", options->limit_s, "Seconds of one recording")
      .Whole(1, 1'000'000)
      .ShowDefault();
  args.Add("--tag", options->tags, "A tag of the recordings; may be repeated")
      .OneWord()
      .ValueName("NAME=VALUE");
  args.Flag("--for-git-bisect", options->for_git_bisect,
            "Exit with 125 where it cannot be told, or the command fails");
  return [options, &asker] { return AskJudge(*options, asker); };
}

Body DescribeRunsBaselineSet(Description& args, Asker&) {
  auto options = std::make_shared<BaselineParams>();
  args.Add("name", options->name, "Name of the baseline, as main").Required();
  args.Add("run", options->run,
           "Number, name, begin of the content's digest, or latest")
      .Required();
  args.Add("--reason", options->reason, "Why, for those who ask later");
  AddStoreTo(args, options->store);
  return [options]() -> Result<Answer> {
    LAMINA_ASSIGN(Store store,
                  OpenStore(options->store, Store::Mode::kExisting));
    LAMINA_ASSIGN(const Run run, store.Find(options->run));
    LAMINA_TRY(store.SetBaseline(options->name, run, runstore::UserName(),
                                 options->reason));
    return BaselineAnswer("runs baseline set", store, options->name);
  };
}

Body DescribeRunsBaselineUnset(Description& args, Asker&) {
  auto options = std::make_shared<BaselineParams>();
  args.Add("name", options->name, "Name of the baseline").Required();
  AddStoreTo(args, options->store);
  return [options]() -> Result<Answer> {
    LAMINA_ASSIGN(Store store,
                  OpenStore(options->store, Store::Mode::kExisting));
    LAMINA_TRY(store.EndBaseline(options->name));
    return BaselineAnswer("runs baseline unset", store, options->name);
  };
}

Body DescribeRunsBaselineList(Description& args, Asker&) {
  auto options = std::make_shared<BaselineParams>();
  AddStoreTo(args, options->store);
  return [options]() -> Result<Answer> {
    LAMINA_ASSIGN(Store store,
                  OpenStore(options->store, Store::Mode::kExisting));
    return BaselineAnswer("runs baseline list", store, "");
  };
}

Body DescribeRunsBaselineShow(Description& args, Asker&) {
  auto options = std::make_shared<BaselineParams>();
  args.Add("name", options->name, "Name of the baseline").Required();
  AddStoreTo(args, options->store);
  return [options]() -> Result<Answer> {
    LAMINA_ASSIGN(Store store,
                  OpenStore(options->store, Store::Mode::kExisting));
    return BaselineAnswer("runs baseline show", store, options->name);
  };
}

Body DescribeRunsDecide(Description& args, Asker&) {
  auto options = std::make_shared<DecideParams>();
  args.Add("run", options->run,
           "The run: number, name, begin of the content's digest, or latest")
      .Required();
  args.Add("verdict", options->verdict,
           "accept: gates pass for this pair; reject: they say so")
      .OneOf({"accept", "reject"})
      .Required();
  args.Add("--against", options->against,
           "The run that it is held against; of a change in a series the last "
           "one before")
      .Required();
  args.Add("--reason", options->reason, "Why, for those who ask later")
      .Required();
  AddStoreTo(args, options->store);
  return [options] { return AskDecide(*options); };
}

Body DescribeRunsRecompute(Description& args, Asker& asker) {
  auto options = std::make_shared<RecomputeParams>();
  args.Add("runs", options->runs,
           "Runs (default: those whose numbers an older version made)");
  AddStoreTo(args, options->store);
  AddWhereTo(args, options->where);
  args.Flag("--all", options->all, "Also those of this version");
  return [options, &asker] { return AskRecompute(*options, asker); };
}

Body DescribeRunsPrune(Description& args, Asker& asker) {
  auto options = std::make_shared<PruneParams>();
  args.Add("--keep", options->keep,
           "Runs that stay: baselines, the newest of each key, then the newest "
           "of all")
      .Whole(0, int64_t{1} << 40);
  args.Add("--older", options->older, "Runs of this age go: 90d")
      .ValueName("AGE");
  AddWhereTo(args, options->where);
  args.Flag("--dry-run", options->dry_run, "Only say which runs would go");
  AddStoreTo(args, options->store);
  return [options, &asker] { return AskPrune(*options, asker); };
}

}  // namespace lamina::questions
