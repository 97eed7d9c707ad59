// SPDX-License-Identifier: Apache-2.0
//
// What every command has: the options that say how its answer is printed, a way
// to say errors and to print answers, and its place in the list.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit_status.h"
#include "base/status.h"
#include "cli/arguments.h"
#include "engine/origins.h"
#include "lamina/result.h"
#include "questions/asker.h"
#include "questions/bodies.h"

namespace lamina::cli {

// What -o names, and with it which options a command has besides its own.
enum class Output {
  kDocument,       // the document; its name's ending says the format
  kDocumentOrOwn,  // as kDocument, but .json (.gz) is a file of the command
  kOwn,            // a trace or a folder; the document goes to stdout
  kFiles,          // files that the command names itself; it has no document
};

// Options of every command.
struct Common {
  Common();

  std::string format = "table";
  std::string output = "-";
  bool timing = false;
  bool redact = false;
  bool no_cache = false;
  bool open = false;  // the page of a report, in a browser

  questions::Asker asker;
  questions::CommandWords words;  // set before the command runs
  engine::Origins origins;        // of opened traces, to redact a page

  // Adds the options to a command. `own_format`, where there is one, is written
  // by the command itself besides those that write documents.
  // `opens`: what it answers can be opened in a browser.
  void AddTo(questions::Description& args, Output names = Output::kDocument,
             const char* own_format = nullptr, bool opens = false);
  // Once the line was parsed: what it says of who asks.
  Status Prepare();
  // What a page of these inputs must not show; null: it may show all.
  std::unique_ptr<render::Secrets> SecretsOf(
      const std::vector<std::string>& inputs) const;

 private:
  void AddRulesTo(questions::Description& args);
  void AddRedactTo(questions::Description& args);
  void AddTimingTo(questions::Description& args);
};

// A command describes what it takes in `args` and returns what runs it.
using Run = std::function<Result<int>()>;

struct CommandInfo {
  const char* name;
  const char* summary;
  // Shown at the end of --help.
  const char* example;
  // Of a question: what it takes, and what answers it.
  questions::Body (*describe)(questions::Description& args,
                              questions::Asker& asker) = nullptr;
  Output output = Output::kDocument;
  const char* own_format = nullptr;
  // Whether -o names a file of the question instead of the document; null:
  // where `output` is kOwn.
  bool (*owns_output)(questions::Description& args,
                      const Common& common) = nullptr;
  // Of a command that is no question.
  Run (*add)(questions::Description& args, Common& common) = nullptr;
  std::span<const CommandInfo> commands = {};  // below this one
};

inline CommandInfo OwnCommand(const char* name, const char* summary,
                              const char* example,
                              Run (*add)(questions::Description& args,
                                         Common& common)) {
  CommandInfo out{name, summary, example};
  out.add = add;
  return out;
}

// The format that the ending of a name stands for, as --format has it; empty:
// none.
std::string_view FormatOfName(std::string_view name);

// Adds a command, with those below it; what runs it is in `run` once the line
// was parsed and names it.
void AddCommand(Place place, const CommandInfo& command, Common& common,
                Run& run);

// Writes a document, or what --only leaves of it, as --format and -o say.
Status Write(Document& document, const Common& common);

// Width of the terminal on stdout, or 100 in a pipe; true if styles may be
// used there.
int OutputWidth();
bool OutputColor();

int ExitStatusOf(const Error& error);
void PrintError(const Error& error);

}  // namespace lamina::cli
