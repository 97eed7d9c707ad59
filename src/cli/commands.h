// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "cli/command.h"

namespace lamina::cli {

// Those that are no question.
CommandInfo QueryCommand();
CommandInfo ListCommand();
CommandInfo CacheCommand();

// Every command, in the order of --help; those of other fronts of the program
// stand among them.
std::span<const CommandInfo> Commands(std::span<const CommandInfo> fronts);

}  // namespace lamina::cli
