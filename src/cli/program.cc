// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <cstdio>

#include "base/decimal.h"
#include "base/escape.h"
#include "cli/commands.h"
#include "cli/manual.h"
#include "cli/manual_page.h"
#include "lamina/version.h"
#include "rules/document.h"

namespace lamina::cli {
namespace {

using Fronts = std::span<const CommandInfo>;

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
int UnknownCommand(const std::string& word, Fronts fronts) {
  std::vector<std::string_view> names;
  for (const CommandInfo& command : Commands(fronts))
    names.push_back(command.name);
  std::string message = "unknown command '" + EscapeTerminal(word) + "'";
  const std::string_view near = rules::Nearest(word, names);
  if (!near.empty()) message += "; did you mean '" + std::string(near) + "'?";
  std::fprintf(stderr, "lamina: error: %s\n", message.c_str());
  return kUsage;
}

bool IsCommand(std::string_view word, Fronts fronts) {
  for (const CommandInfo& command : Commands(fronts)) {
    if (word == command.name) return true;
  }
  return false;
}

}  // namespace

int RunProgram(int argc, char** argv, const std::string& version,
               Fronts fronts) {
  CommandLine line("Where did my GPU time go, and what do I change next?",
                   version);
  Common common;
  Run run;
  // Those of the others would only take memory (0.6 MiB).
  const std::string_view first = argc > 1 ? argv[1] : "";
  for (const CommandInfo& command : Commands(fronts)) {
    if (!IsCommand(first, fronts) || first == command.name)
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
  if (at < words.size() && !words[at].starts_with('-') &&
      !IsCommand(words[at], fronts))
    return UnknownCommand(words[at], fronts);
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
  if (!status.error().what.empty())
    PrintError(WithNames(status.error(), OptionNames));
  return ExitStatusOf(status.error());
}

}  // namespace lamina::cli
