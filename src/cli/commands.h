// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace lamina::cli {

// Those that are no question.
CommandInfo QueryCommand();
CommandInfo ListCommand();
CommandInfo CacheCommand();

// Every command, in the order of --help; those of other fronts of the program
// stand among them.
std::span<const CommandInfo> Commands(std::span<const CommandInfo> fronts);

// What main() does: reads the line, runs the command that it names, says what
// went wrong. `version` is what --version prints. `fronts` are commands that
// begin another front of the program.
int RunProgram(int argc, char** argv, const std::string& version,
               std::span<const CommandInfo> fronts);

}  // namespace lamina::cli
