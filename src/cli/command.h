// SPDX-License-Identifier: Apache-2.0
//
// What every command has: the common options, a way to say errors and to
// write results, and its place in the list.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/timer.h"
#include "cli/arguments.h"
#include "cli/given.h"
#include "engine/origins.h"
#include "engine/session.h"
#include "lamina/result.h"
#include "trace/losses.h"

namespace lamina::sql {
class Source;
}

namespace lamina::cli {

struct Host;

// Exit status; no command has another one.
enum ExitStatus : int {
  kFine = 0,
  kCheckFailed = 1,
  kUsage = 2,
  kBadInput = 3,
};

// Numbers of events are 32 bits wide.
constexpr int64_t kMaxUid = 0xFFFFFFFF;

// What -o names, and with it what applies to a command.
enum class Output {
  kDocument,       // the document; its name's ending says the format
  kDocumentOrOwn,  // as kDocument, but .json (.gz) is a file of the command
  kOwn,            // a trace or a folder; the document goes to stdout
};

// Options of every command.
struct Common {
  std::string format = "table";
  std::string output = "-";
  int threads = 0;  // 0: all cores
  std::string rules_dir;
  bool timing = false;
  size_t top = 0;
  std::vector<std::string> only;
  std::vector<std::string> captures;
  std::string step, range;
  bool redact = false;
  bool no_cache = false;
  // Who runs the command in its own process; null: the command line does.
  const Host* host = nullptr;

  StageTimes times;
  Given given;                        // set before the command runs
  engine::Origins origins;            // of opened traces, to redact a page
  std::set<std::string> lost_inputs;  // inputs whose losses were said
  // To a host, instead of stderr, in the order in which it was said: Write()
  // puts it between the verdicts and the other notes of the document.
  std::vector<Note> told;

  // Adds the options to a command. `own_formats` are written by the command
  // itself, not by Write().
  void AddTo(Arguments& args, Output names = Output::kDocument,
             std::initializer_list<const char*> own_formats = {});
  // --capture, of commands that read replayed graphs.
  void AddCapturesTo(Arguments& args);
  // --range and, of commands that have none of their own, --step.
  void AddRegionTo(Arguments& args, bool step = true);
  // --redact; AddTo() adds it, too, and refuses it without --format html.
  void AddRedactTo(Arguments& args);
  int ThreadCount() const;
  // Whether the document is written with all its tables and rows.
  bool Complete() const { return top == 0 && only.empty(); }
  engine::OpenOptions Open();
  // A trace to ask: that which the host has open, where nothing but the trace
  // itself is asked for, else opened now. Nobody else asks it while it is held,
  // on one thread.
  Result<std::shared_ptr<engine::Session>> OpenTrace(const std::string& path);
  Result<std::shared_ptr<engine::Session>> OpenTrace(
      const std::string& path, const engine::OpenOptions& open);
  // For ranks that are read side by side (dist::LoadOptions::open): a host may
  // stop them; null where nobody can.
  std::function<Result<std::shared_ptr<engine::Session>>(
      const std::string& path, uint64_t file_number,
      const engine::OpenOptions& open)>
  OpenRank() const;
  // The same for SQL, which is opened when it is first asked.
  Result<std::shared_ptr<sql::Source>> OpenSource(const std::string& path);
  // Says once of each input what of it could not be used: on stderr, or in the
  // document that a host takes.
  void SayLosses(const std::string& path, const trace::Losses& losses);
  // The same for any warning: "lamina: warning: TEXT" on stderr, or a note.
  void Warn(const char* id, const std::string& text);
  // What is no warning: "lamina: TEXT", or a note.
  void Say(const char* id, const std::string& text);
  // What follows the reading of inputs: the host, or a line on a terminal.
  std::function<void(uint64_t done, uint64_t total)> Progress(
      const std::string& what) const;
  // Patterns of what a page must not show, with those of --rules.
  Status LoadSecrets();
  // Where traces that are opened say what a redacted page must not show.
  engine::Origins* OriginsToLearn() { return redact ? &origins : nullptr; }
  // What a page of these inputs must not show; null: it may show all.
  std::unique_ptr<render::Secrets> SecretsOf(
      const std::vector<std::string>& inputs) const;
};

// A command registers its options on `args` and returns what runs it.
using Run = std::function<Result<int>()>;

struct CommandInfo {
  const char* name;
  const char* summary;
  // Shown at the end of --help.
  const char* example;
  Run (*add)(Arguments& args, Common& common);
};

// The format that the ending of a name stands for, as --format has it; empty:
// none.
std::string_view FormatOfName(std::string_view name);

// Adds a command to a line; what runs it is in `run` once the line was parsed
// and names it.
void AddCommand(CommandLine& line, const CommandInfo& command, Common& common,
                Run& run);

// Writes a document, or what --only leaves of it, as --format and -o say.
Status Write(Document& document, const Common& common);

// Width of the terminal on stdout, or 100 in a pipe; true if styles may be
// used there.
int OutputWidth();
bool OutputColor();

// An output must not replace what is read: a trace cannot be recorded again.
// `option` is the one that names the output; an empty output is none.
Status KeepInputs(std::string_view option, const std::string& output,
                  const std::vector<std::string>& inputs);

// Whether a copy of the input with additions can be written: of JSON only.
Status CheckCopyable(const trace::Trace& trace, std::string_view option);
// Values of an option like "3", "0-2" or "1,5-7"; at most 100000.
Result<std::vector<uint32_t>> ParseNumbers(const std::string& option,
                                           const std::string& text);

int ExitStatusOf(const Error& error);
void PrintError(const Error& error);

}  // namespace lamina::cli
