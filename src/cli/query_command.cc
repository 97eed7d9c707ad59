// SPDX-License-Identifier: Apache-2.0
//
// The shell of lamina query: statements end in a semicolon, words that begin
// with a dot are commands of the shell.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/core.h>
#include <iostream>
#include <span>
#include <sqlite3.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/byte_source.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "questions/compiled_input.h"
#include "questions/query_input.h"
#include "report/writers.h"
#include "rules/document.h"
#include "sql/database.h"
#include "sql/table_def.h"

namespace lamina::cli {

// Reads from the terminal until .quit or the end of input.
Result<int> RunQueryShell(sql::Database& database,
                          const sql::QueryOptions& options, Common& common,
                          const std::vector<std::string>& inputs);

}  // namespace lamina::cli

#ifdef LAMINA_EDITLINE
#include <editline/readline.h>
#endif

namespace lamina::cli {

namespace {

constexpr size_t kMaxScript = size_t{1} << 20;

// Ctrl-C ends the query that runs, not the shell.
std::atomic<bool> interrupted = false;
void OnInterrupt(int) { interrupted = true; }

struct DotWord {
  std::string_view name, args, doc;
};
constexpr DotWord kDotWords[] = {
    {".tables", "[GLOB]", "Tables, or those whose names match."},
    {".schema", "TABLE", "Columns of a table with their types."},
    {".doc", "TABLE[.COLUMN]", "What a table or a column means."},
    {".functions", "[GLOB]", "Functions beside those of SQLite."},
    {".mode", "FORMAT", "Output format: table, csv, json, markdown ..."},
    {".output", "[FILE]", "Writes results to a file; without one: here."},
    {".read", "FILE", "Runs a file of statements."},
    {".limit", "N", "Rows shown of a result."},
    {".timer", "on|off", "Says how long a query took."},
    {".help", "", "This list."},
    {".quit", "", "Ends."}};

#ifdef LAMINA_EDITLINE
// Names that complete a word.
std::vector<std::string>& Names() {
  static std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const DotWord& word : kDotWords) out.emplace_back(word.name);
    for (const sql::TableDef& table : sql::Tables()) {
      out.push_back(table.name);
      for (const sql::ColumnDef& column : table.columns)
        out.push_back(column.name);
    }
    for (const sql::FunctionInfo& f : sql::Functions()) out.push_back(f.name);
    for (const char* word : {"SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY",
                             "LIMIT", "JOIN", "HAVING", "DISTINCT"})
      out.emplace_back(word);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }();
  return names;
}

char* NextName(const char* prefix, int state) {
  static size_t at = 0;
  if (state == 0) at = 0;
  const std::string_view begin = prefix;
  for (const auto& names = Names(); at < names.size();) {
    const std::string& name = names[at++];
    if (name.size() >= begin.size() &&
        std::equal(begin.begin(), begin.end(), name.begin(),
                   [](char a, char b) { return (a | 32) == (b | 32); }))
      return strdup(name.c_str());
  }
  return nullptr;
}

char** Complete(const char* text, int, int) {
  rl_attempted_completion_over = 1;
  return rl_completion_matches(text, &NextName);
}

std::string HistoryFile() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (state != nullptr && *state == '/') {
    folder = state;
  } else if (home != nullptr && *home == '/') {
    folder = std::filesystem::path(home) / ".local/state";
  } else {
    return "";
  }
  std::error_code failed;
  std::filesystem::create_directories(folder / "lamina", failed);
  return failed ? "" : (folder / "lamina/query_history").string();
}
#endif

class Shell {
 public:
  Shell(sql::Database& database, sql::QueryOptions options, Common& common,
        const std::vector<std::string>& inputs)
      : database_(database),
        options_(std::move(options)),
        common_(common),
        inputs_(inputs) {
    options_.stop = &interrupted;
    if (common_.asker.top == 0) common_.asker.top = 1000;
  }

  int Run() {
    std::printf(
        "SQL over %s. Statements end in ';'; .help lists commands, .tables "
        "tables.\n",
        counted().c_str());
    struct sigaction action {};
    action.sa_handler = &OnInterrupt;
    sigaction(SIGINT, &action, nullptr);
#ifdef LAMINA_EDITLINE
    rl_initialize();
    rl_attempted_completion_function = &Complete;
    const std::string history = HistoryFile();
    using_history();
    if (!history.empty()) read_history(history.c_str());
#endif
    std::string statement;
    std::string line;
    while (!done_ &&
           ReadLine(statement.empty() ? "lamina> " : "   ...> ", line)) {
      if (statement.empty() && line.starts_with('.')) {
        Report(Dot(line));
        continue;
      }
      statement += line + "\n";
      if (statement.find_first_not_of(" \t\n") == std::string::npos) {
        statement.clear();
      } else if (sqlite3_complete(statement.c_str()) != 0) {
        Report(Query(statement));
        statement.clear();
      }
    }
#ifdef LAMINA_EDITLINE
    if (!history.empty()) {
      write_history(history.c_str());
      chmod(history.c_str(), S_IRUSR | S_IWUSR);
    }
#endif
    return kFine;
  }

 private:
  std::string counted() const {
    return Counted(static_cast<int64_t>(inputs_.size()), "trace");
  }

  bool ReadLine(const char* prompt, std::string& line) {
#ifdef LAMINA_EDITLINE
    char* read = readline(prompt);
    if (read == nullptr) {
      std::puts("");
      return false;
    }
    line = read;
    if (!line.empty()) add_history(read);
    std::free(read);
    return true;
#else
    std::fputs(prompt, stdout);
    std::fflush(stdout);
    return static_cast<bool>(std::getline(std::cin, line));
#endif
  }

  static void Report(const Status& status) {
    if (!status) PrintError(status.error());
  }

  Status Query(const std::string& text) {
    interrupted = false;
    const auto begin = std::chrono::steady_clock::now();
    Document document;
    document.command = "query";
    document.inputs = inputs_;
    LAMINA_ASSIGN(document.result.tables, database_.Run(text, options_));
    LAMINA_TRY(Write(document, common_));
    std::fflush(stdout);
    if (timer_) {
      const std::chrono::duration<double> took =
          std::chrono::steady_clock::now() - begin;
      std::fprintf(stderr, "%.3f s\n", took.count());
    }
    return {};
  }

  Status Show(Table table) {
    Document document;
    document.command = "query";
    document.result.tables.push_back(std::move(table));
    Common plain;
    plain.asker.top = 100000;
    LAMINA_TRY(Write(document, plain));
    std::fflush(stdout);
    return {};
  }

  // The rows of a list whose column `column` matches.
  Status ShowMatching(const Table& list, size_t column,
                      const std::string& glob) {
    Table out(list.schema());
    for (size_t r = 0; r < list.rows(); ++r) {
      const std::string name(list.At(r, column).text());
      if (!glob.empty() && sqlite3_strglob(glob.c_str(), name.c_str()) != 0)
        continue;
      std::vector<Value> row;
      for (size_t c = 0; c < list.columns(); ++c) row.push_back(list.At(r, c));
      out.AddRow(row);
    }
    return Show(std::move(out));
  }

  static Result<const sql::TableDef*> TableOf(const std::string& name) {
    const sql::TableDef* table = sql::FindTable(name);
    if (table != nullptr) return table;
    std::vector<std::string_view> names;
    for (const sql::TableDef& t : sql::Tables()) names.push_back(t.name);
    const std::string_view near = rules::Nearest(name, names);
    return Fail(UsageError("there is no table '" + name + "'",
                           near.empty()
                               ? ".tables lists them"
                               : "did you mean '" + std::string(near) + "'?"));
  }

  Status Doc(const std::string& what) {
    const size_t dot = what.find('.');
    LAMINA_ASSIGN(const sql::TableDef* const table,
                  TableOf(what.substr(0, dot)));
    if (dot == std::string::npos) {
      std::printf("%s: %s\n", table->name.c_str(), table->doc.c_str());
      return {};
    }
    for (const sql::ColumnDef& column : table->columns) {
      if (column.name == what.substr(dot + 1)) {
        std::printf("%s: %s\n", what.c_str(), column.doc.c_str());
        return {};
      }
    }
    return Fail(UsageError("there is no column '" + what + "'",
                           ".schema " + table->name + " lists them"));
  }

  Status Dot(const std::string& line) {
    const size_t blank = line.find_first_of(" \t");
    const std::string word = line.substr(0, blank);
    std::string arg;
    if (blank != std::string::npos) {
      const size_t first = line.find_first_not_of(" \t", blank);
      const size_t last = line.find_last_not_of(" \t;");
      if (first != std::string::npos && last >= first)
        arg = line.substr(first, last - first + 1);
    }
    const auto needs = [&](bool has) -> Status {
      if (has) return {};
      for (const DotWord& known : kDotWords) {
        if (known.name == word)
          return Fail(UsageError(word + " needs " + std::string(known.args),
                                 std::string(known.doc)));
      }
      return {};
    };
    if (word == ".quit" || word == ".exit") {
      done_ = true;
      return {};
    }
    if (word == ".help") {
      for (const DotWord& known : kDotWords)
        std::printf("%s %s\n    %s\n", std::string(known.name).c_str(),
                    std::string(known.args).c_str(),
                    std::string(known.doc).c_str());
      return {};
    }
    if (word == ".tables") return ShowMatching(sql::ListTables(), 0, arg);
    if (word == ".functions") return ShowMatching(sql::ListFunctions(), 0, arg);
    if (word == ".schema") {
      LAMINA_TRY(needs(!arg.empty()));
      LAMINA_TRY(TableOf(arg).map([](auto*) {}));
      return ShowMatching(sql::ListColumns(), 0, arg);
    }
    if (word == ".doc") {
      LAMINA_TRY(needs(!arg.empty()));
      return Doc(arg);
    }
    if (word == ".mode") {
      LAMINA_TRY(needs(!arg.empty()));
      if (report::FindWriter(arg) == nullptr) {
        std::string names;
        for (const auto& writer : report::Writers())
          names += (names.empty() ? "" : ", ") + std::string(writer.name);
        return Fail(UsageError("there is no format '" + arg + "'", names));
      }
      common_.format = arg;
      return {};
    }
    if (word == ".output") {
      common_.output = arg.empty() ? "-" : arg;
      return questions::KeepInputs(".output", common_.output, inputs_);
    }
    if (word == ".read") {
      LAMINA_TRY(needs(!arg.empty()));
      LAMINA_ASSIGN(const std::string text, ReadAll(arg, kMaxScript));
      return Query(text);
    }
    if (word == ".limit") {
      const auto rows = ParseInt(arg);
      LAMINA_TRY(needs(rows && *rows > 0));
      common_.asker.top = static_cast<size_t>(*rows);
      return {};
    }
    if (word == ".timer") {
      LAMINA_TRY(needs(arg == "on" || arg == "off"));
      timer_ = arg == "on";
      return {};
    }
    std::vector<std::string_view> names;
    for (const DotWord& known : kDotWords) names.push_back(known.name);
    const std::string_view near = rules::Nearest(word, names);
    return Fail(UsageError("there is no command '" + word + "'",
                           near.empty()
                               ? ".help lists them"
                               : "did you mean '" + std::string(near) + "'?"));
  }

  sql::Database& database_;
  sql::QueryOptions options_;
  Common& common_;
  const std::vector<std::string>& inputs_;
  bool timer_ = false;
  bool done_ = false;
};

}  // namespace

Result<int> RunQueryShell(sql::Database& database,
                          const sql::QueryOptions& options, Common& common,
                          const std::vector<std::string>& inputs) {
  return Shell(database, options, common, inputs).Run();
}

// lamina query: SQL over one trace, several traces or a folder of ranks.

namespace {

constexpr size_t kMaxSql = size_t{1} << 20;

struct QueryOptions {
  std::vector<std::string> words;
  std::string file;
  std::vector<std::string> params;
  std::vector<std::string> compiled;
  double time_limit_s = 0;
  size_t max_rows = 0;
  bool allow_temp = false;
  bool model = false;
};

// "a=trace.json" is a trace with a name; a path may hold '=' as well.
std::optional<std::pair<std::string, std::string>> Named(
    const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos) return std::nullopt;
  const std::string name = word.substr(0, equals);
  if (!std::all_of(name.begin(), name.end(), IsWordCharacter))
    return std::nullopt;
  std::error_code none_there;
  if (std::filesystem::exists(word, none_there)) return std::nullopt;
  return std::pair(name, word.substr(equals + 1));
}

Result<std::string> ReadSql(const QueryOptions& options,
                            const std::string& text) {
  if (!options.file.empty() && !text.empty())
    return Fail(UsageError("both -f and a query are given", "leave one out"));
  if (text != "-" && options.file.empty()) return text;
  return ReadAll(options.file.empty() ? "-" : options.file, kMaxSql);
}

// The traces and the query among the words: a query has blanks and no file of
// its name, or is "-".
Result<int> RunQuery(const QueryOptions& options, Common& common) {
  std::vector<sql::SchemaInput> schemas;
  std::vector<std::string> inputs;
  std::string text;
  for (size_t i = 0; i < options.words.size(); ++i) {
    const std::string& word = options.words[i];
    if (const auto named = Named(word)) {
      LAMINA_ASSIGN(auto schema,
                    questions::OpenSchema(named->first, named->second,
                                          common.asker, inputs));
      schemas.push_back(std::move(schema));
    } else if (schemas.empty()) {
      LAMINA_ASSIGN(auto schema,
                    questions::OpenSchema("main", word, common.asker, inputs));
      schemas.push_back(std::move(schema));
    } else if (word.empty()) {
      return Fail(UsageError("the query is empty",
                             "give SQL in quotes, or - for standard input"));
    } else if (text.empty() && i + 1 == options.words.size()) {
      text = word;
    } else {
      return Fail(UsageError("'" + word + "' is one word too many",
                             "name several traces: a=one.json b=two.json, and "
                             "give the query last, in quotes"));
    }
  }
  LAMINA_TRY(questions::KeepInputs("-o", common.output, inputs));
  LAMINA_TRY(questions::KeepInputs("-o", common.output, options.compiled));
  LAMINA_ASSIGN(const auto programs, questions::ReadCompiled(options.compiled));
  for (const sql::SchemaInput& schema : schemas) {
    for (const auto& source : schema.sources) source->UseCompiled(programs);
  }
  sql::DatabaseOptions open;
  open.allow_temp = options.allow_temp;
  LAMINA_ASSIGN(auto database, sql::Database::Open(std::move(schemas), open));
  sql::QueryOptions query;
  query.time_limit = std::chrono::milliseconds(
      static_cast<int64_t>(options.time_limit_s * 1000));
  query.max_rows = options.max_rows;
  for (const std::string& param : options.params) {
    const size_t equals = param.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Fail(
          UsageError("--param: expected NAME=VALUE, got '" + param + "'",
                     "--param limit=10 for :limit"));
    }
    query.params[param.substr(0, equals)] =
        sql::ParameterOf(param.substr(equals + 1));
  }
  if (text.empty() && options.file.empty() && isatty(STDIN_FILENO) != 0 &&
      isatty(STDOUT_FILENO) != 0)
    return RunQueryShell(*database, query, common, inputs);
  if (text.empty() && options.file.empty()) text = "-";
  const bool to_file =
      common.output.ends_with(".sqlite") || common.output.ends_with(".db");
  // A file with all result tables needs no query.
  if (!(to_file && text == "-")) {
    LAMINA_ASSIGN(text, ReadSql(options, text));
  } else {
    text.clear();
  }
  if (to_file) {
    LAMINA_TRY(database->Export(common.output, text, options.model, query));
    return kFine;
  }
  Document document;
  document.command = "query";
  document.inputs = inputs;
  LAMINA_ASSIGN(document.result.tables, database->Run(text, query));
  // All rows in a file or a pipe; what fits a person on a terminal.
  if (common.asker.top == 0)
    common.asker.top = isatty(STDOUT_FILENO) != 0 && common.output == "-"
                           ? 1000
                           : size_t{1} << 32;
  LAMINA_TRY(Write(document, common));
  return kFine;
}

Run AddQuery(questions::Description& args, Common& common) {
  auto options = std::make_shared<QueryOptions>();
  args.Add("trace", options->words,
           "Trace file, folder of ranks, or NAME=TRACE for several; then the "
           "query (- or none: from standard input, on a terminal a shell)")
      .Required()
      .Count(1, 12);
  args.Add("-f,--file", options->file, "Reads the query from this file");
  args.Add("--param", options->params, "NAME=VALUE for :NAME in the query")
      .OneWord();
  args.Add("--time-limit", options->time_limit_s,
           "Seconds after which a query ends (default: none)")
      .Within(0.001, 1e6);
  args.Add("--max-rows", options->max_rows,
           "A result with more rows is an error")
      .Whole(1, int64_t{1} << 40);
  args.Flag("--allow-temp", options->allow_temp,
            "Temporary tables and views may be made");
  args.Flag("--model", options->model,
            "With -o FILE.sqlite and no query: rows of the trace too");
  common.asker.AddCapturesTo(args);
  common.asker.AddRegionTo(args);
  questions::AddCompiledTo(args, options->compiled);
  common.AddTo(args);
  return [options, &common] { return RunQuery(*options, common); };
}

}  // namespace

CommandInfo QueryCommand() {
  return OwnCommand(
      "query", "SQL over the trace and all result tables",
      "lamina query trace.json.gz \"SELECT name, sum(dur_ns) AS ns FROM "
      "kernel GROUP BY name ORDER BY ns DESC LIMIT 10\"",
      &AddQuery);
}

}  // namespace lamina::cli
