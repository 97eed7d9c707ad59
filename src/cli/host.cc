// SPDX-License-Identifier: Apache-2.0
#include "cli/host.h"

#include <algorithm>

#include "base/stop.h"
#include "cli/commands.h"

namespace lamina::cli {
namespace {

// Commands that give a document. The others are no part of a library that asks.
constexpr CommandInfo (*kCommands[])() = {
    ReportCommand, TreeCommand,     LayersCommand,   HostCommand,
    PathCommand,   DiagnoseCommand, AnnotateCommand, DiffCommand,
    SliceCommand,  ReplayCommand,   RanksCommand,    MergeCommand,
    GraphCommand,  ConvertCommand,  EventCommand,    CostCommand,
    MemoryCommand,
};

CommandInfo FindCommand(std::string_view name) {
  const auto* const found = std::find_if(
      std::begin(kCommands), std::end(kCommands),
      [&](CommandInfo (*command)()) { return name == command().name; });
  LAMINA_CHECK(found != std::end(kCommands));
  return (*found)();
}

bool Stopped(const Host& host) {
  return host.stop != nullptr && host.stop->load(std::memory_order_relaxed);
}

}  // namespace

Result<Document> RunInHost(const std::vector<std::string>& words,
                           const Host& host) {
  if (Stopped(host)) return Fail(CancelledError());
  Document document;
  Host taking = host;
  taking.take = [&](Document made) { document = std::move(made); };
  CommandLine line("", "");
  Common common;
  common.format = kAsDocument;
  common.host = &taking;
  common.threads = host.threads;
  common.rules_dir = host.rules_dir;
  common.captures = host.captures;
  common.no_cache = !host.cache;
  Run run;
  AddCommand(line.root(), FindCommand(words.front()), common, run);
  LAMINA_TRY(line.Read(words));
  LAMINA_CHECK(run != nullptr);
  common.given = Given(line.Given());
  // A document is taken, whatever an input is named.
  if (common.output != "-") {
    LAMINA_TRY(KeepInputs("-o", common.output, common.given.inputs()));
    LAMINA_TRY(KeepInputs("-o", common.output, common.captures));
  }
  const Status ran =
      EndedByStop(host.stop, [&] { return run().map([](int) {}); });
  // What a file or a rank could not do when it was stopped is no answer.
  if (Stopped(host)) return Fail(CancelledError());
  LAMINA_TRY(ran);
  return document;
}

DescribedCommand DescribeCommand(const std::vector<std::string>& words) {
  CommandLine line("", "");
  Common common;
  Run run;
  AddCommand(line.root(), FindCommand(words.front()), common, run);
  DescribedCommand found = line.Describe();
  std::string name;
  for (const std::string& word : words) {
    name += (name.empty() ? "" : " ") + word;
    const auto sub = std::find_if(
        found.commands.begin(), found.commands.end(),
        [&](const DescribedCommand& one) { return one.name == name; });
    LAMINA_CHECK(sub != found.commands.end());
    DescribedCommand next = *sub;
    found = std::move(next);
  }
  return found;
}

}  // namespace lamina::cli
