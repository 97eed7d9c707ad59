// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "cli/command.h"

namespace lamina::cli {

CommandInfo ReportCommand();
CommandInfo TreeCommand();
CommandInfo EventCommand();
CommandInfo QueryCommand();
CommandInfo LayersCommand();
CommandInfo HostCommand();
CommandInfo PathCommand();
CommandInfo DiagnoseCommand();
CommandInfo AnnotateCommand();
CommandInfo GraphCommand();
CommandInfo DiffCommand();
CommandInfo RanksCommand();
CommandInfo MergeCommand();
CommandInfo SliceCommand();
CommandInfo ReplayCommand();
CommandInfo ConvertCommand();
CommandInfo CostCommand();
CommandInfo MemoryCommand();
CommandInfo McpCommand();
CommandInfo ServeCommand();
CommandInfo ListCommand();
CommandInfo CacheCommand();

// Every command, in the order of --help.
std::span<const CommandInfo> Commands();

}  // namespace lamina::cli
