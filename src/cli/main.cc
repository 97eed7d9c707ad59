// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <unistd.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/leftovers.h"
#include "cli/commands.h"
#include "cli/manual.h"
#include "cli/manual_page.h"
#include "commit.h"
#include "lamina/version.h"
#include "rules/document.h"

namespace lamina::cli {
namespace {

void PrintTiming(const Common& common) {
  for (const StageTimes::Stage& stage : common.asker.times.stages()) {
    std::fprintf(stderr, "%-12s %8.3f s\n", stage.name.c_str(), stage.seconds);
  }
  for (const auto& [name, text] : common.asker.times.notes()) {
    std::fprintf(stderr, "%-12s %s\n", name.c_str(),
                 EscapeTerminal(text).c_str());
  }
  std::fprintf(stderr, "%-12s %s\n", "peak memory",
               HumanBytes(static_cast<double>(PeakMemoryBytes())).c_str());
}

// An unknown command: names the nearest one.
int UnknownCommand(const std::string& word) {
  std::vector<std::string_view> names;
  for (const CommandInfo& command : Commands()) names.push_back(command.name);
  std::string message = "unknown command '" + EscapeTerminal(word) + "'";
  const std::string_view near = rules::Nearest(word, names);
  if (!near.empty()) message += "; did you mean '" + std::string(near) + "'?";
  std::fprintf(stderr, "lamina: error: %s\n", message.c_str());
  return kUsage;
}

bool IsCommand(std::string_view word) {
  for (const CommandInfo& command : Commands()) {
    if (word == command.name) return true;
  }
  return false;
}

// What --version prints: with it a report of a fault can be repeated.
std::string VersionText() {
  return "lamina " + std::string(Version()) +
         " (commit " LAMINA_COMMIT ")\nbuilt with " LAMINA_LIBRARIES;
}

int Main(int argc, char** argv) {
  CommandLine line("Where did my GPU time go, and what do I change next?",
                   VersionText());
  Common common;
  Run run;
  // Those of the others would only take memory (0.6 MiB).
  const std::string_view first = argc > 1 ? argv[1] : "";
  for (const CommandInfo& command : Commands()) {
    if (!IsCommand(first) || first == command.name)
      AddCommand(line.root(), command, common, run);
  }
  // For those who install: `lamina --manual FOLDER` writes what man and the
  // completion of shells read.
  if (argc == 3 && std::string_view(argv[1]) == "--manual") {
    const Status status =
        WriteManual(line.Describe(), std::string(Version()), argv[2]);
    if (status) return kFine;
    PrintError(status.error());
    return ExitStatusOf(status.error());
  }
  std::vector<std::string> words(argv + 1, argv + argc);
  const size_t at = !words.empty() && words[0] == "help" ? 1 : 0;
  if (at < words.size() && !words[at].starts_with('-') && !IsCommand(words[at]))
    return UnknownCommand(words[at]);
  if (at == 1 && words.size() > 1) {
    const DescribedCommand program = line.Describe();
    const std::vector<std::string> named(words.begin() + 1, words.end());
    if (const DescribedCommand* command = FindCommand(program, named)) {
      std::fputs(TextPage(*command, OutputWidth()).c_str(), stdout);
      return kFine;
    }
  }
  if (const std::optional<int> ended = line.Parse(std::move(words)))
    return *ended;
  if (!run) {
    std::fputs(line.Help().c_str(), stdout);
    return kFine;
  }
  common.words = questions::CommandWords(line.Given());
  using questions::KeepInputs;
  Status kept = KeepInputs("-o", common.output, common.words.inputs());
  if (kept) kept = KeepInputs("-o", common.output, common.asker.captures);
  if (kept) kept = common.Prepare();
  const Result<int> status = kept ? run() : Fail(kept.error());
  if (common.timing && !common.asker.quiet) PrintTiming(common);
  if (status) return *status;
  // Where it says nothing another process does.
  if (!status.error().what.empty()) PrintError(status.error());
  return ExitStatusOf(status.error());
}

}  // namespace
}  // namespace lamina::cli

namespace {

// At once and on whichever thread: what other threads wait for would not come,
// and containers that were about to grow cannot be unwound (absl's are broken
// then).
[[noreturn]] void OutOfMemory() {
  // Said once, by the thread that finds none first; to clean up may need some.
  static std::atomic<bool> busy = false;
  static thread_local bool first = false;
  if (!first) {
    while (busy.exchange(true)) pause();
    first = true;
    lamina::RemoveLeftovers();
  }
  std::fputs(
      "lamina: error: out of memory; use fewer --threads, a part of the trace "
      "(lamina slice) or a larger machine\n",
      stderr);
  _exit(lamina::cli::kBadInput);
}

// For what was not allocated by operator new.
[[noreturn]] void Terminate() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      OutOfMemory();
    } catch (...) {
      // A fault of ours: the core tells more than any message.
    }
  }
  lamina::RemoveLeftovers();
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler(OutOfMemory);
  std::set_terminate(Terminate);
  // A reader that closes the pipe early (head) is no error of ours.
  std::signal(SIGPIPE, SIG_DFL);
  // A file that grows too large for its limit is an error of its write.
  std::signal(SIGXFSZ, SIG_IGN);
  lamina::CleanUpOnSignals();
  try {
    const int status = lamina::cli::Main(argc, argv);
    // Gigabytes of columns need no orderly release before the end.
    std::fflush(nullptr);
    _exit(status);
  } catch (const std::bad_alloc&) {
    OutOfMemory();
  }
}
