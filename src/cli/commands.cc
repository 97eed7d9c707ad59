// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

namespace lamina::cli {

std::span<const CommandInfo> Commands() {
  static const CommandInfo kCommands[] = {
      ReportCommand(), TreeCommand(),     LayersCommand(),   HostCommand(),
      PathCommand(),   DiagnoseCommand(), AnnotateCommand(), DiffCommand(),
      SliceCommand(),  ReplayCommand(),   RanksCommand(),    MergeCommand(),
      GraphCommand(),  ConvertCommand(),  EventCommand(),    QueryCommand(),
      CostCommand(),   MemoryCommand(),   McpCommand(),      ServeCommand(),
      ListCommand(),   CacheCommand(),
  };
  return kCommands;
}

void AddCommand(CommandLine& line, const CommandInfo& command, Common& common,
                Run& run) {
  const auto body = std::make_shared<Run>();
  Arguments args =
      line.root().Command(command.name, command.summary, command.example,
                          [&run, body] { run = *body; });
  *body = command.add(args, common);
}

}  // namespace lamina::cli
