// SPDX-License-Identifier: Apache-2.0
//
// The shell of lamina query: statements end in a semicolon, words that begin
// with a dot are commands of the shell.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "sql/database.h"

namespace lamina::cli {

// Reads from the terminal until .quit or the end of input.
Result<int> RunQueryShell(sql::Database& database,
                          const sql::QueryOptions& options, Common& common,
                          const std::vector<std::string>& inputs);

}  // namespace lamina::cli
