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

}  // namespace lamina::cli
