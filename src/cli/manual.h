// SPDX-License-Identifier: Apache-2.0
//
// Manual pages and completions, made from the same descriptions as --help.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/arguments.h"

namespace lamina::cli {

// Manual pages (share/man/man1/lamina.1, lamina-report.1,
// lamina-graph-census.1 ...) and completions for bash, zsh and fish, by path
// below the prefix that they are installed to.
struct ManualFile {
  std::string path;
  std::string text;
};
std::vector<ManualFile> Manual(const DescribedCommand& program,
                               const std::string& version);

// Writes them below `folder`, which need not exist. Errors: kInput with the
// file that cannot be written.
Status WriteManual(const DescribedCommand& program, const std::string& version,
                   const std::string& folder);

// The manual page of a command, made from what --help is made from: for man,
// and as text for `lamina help COMMAND`, which needs no man.

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
