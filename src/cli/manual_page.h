// SPDX-License-Identifier: Apache-2.0
//
// The manual page of a command, made from what --help is made from: for man,
// and as text for `lamina help COMMAND`, which needs no man.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"

namespace lamina::cli {

// "lamina-graph-census"
std::string PageName(const DescribedCommand& command);

// Source for man: TH, NAME, SYNOPSIS, COMMANDS, INPUTS, OPTIONS, EXAMPLE ...
std::string RoffPage(const DescribedCommand& command,
                     const std::string& version);

// The same words as man shows them, lines of `width` characters at most where
// words and examples allow it.
std::string TextPage(const DescribedCommand& command, int width);

// The command that `words` name ("graph", "census"), or nullptr. None: the
// program.
const DescribedCommand* FindCommand(const DescribedCommand& program,
                                    const std::vector<std::string>& words);

}  // namespace lamina::cli
