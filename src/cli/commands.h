// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "cli/command.h"

namespace lamina::cli {

// Those that are no question.
CommandInfo QueryCommand();
CommandInfo McpCommand();
CommandInfo ServeCommand();
CommandInfo ListCommand();
CommandInfo CacheCommand();

// Every command, in the order of --help.
std::span<const CommandInfo> Commands();

}  // namespace lamina::cli
