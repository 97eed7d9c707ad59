// SPDX-License-Identifier: Apache-2.0
//
// lamina query: SQL over one trace, several traces or a folder of ranks.
#include <algorithm>
#include <filesystem>
#include <unistd.h>

#include "base/byte_source.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/query_shell.h"
#include "questions/compiled_input.h"
#include "questions/query_input.h"
#include "sql/database.h"

namespace lamina::cli {
namespace {

constexpr size_t kMaxSql = size_t{1} << 20;

struct Options {
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

Result<std::string> ReadSql(const Options& options, const std::string& text) {
  if (!options.file.empty() && !text.empty())
    return Fail(UsageError("both -f and a query are given", "leave one out"));
  if (text != "-" && options.file.empty()) return text;
  return ReadAll(options.file.empty() ? "-" : options.file, kMaxSql);
}

// The traces and the query among the words: a query has blanks and no file of
// its name, or is "-".
Result<int> RunQuery(const Options& options, Common& common) {
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

Run Add(questions::Description& args, Common& common) {
  auto options = std::make_shared<Options>();
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
      &Add);
}

}  // namespace lamina::cli
