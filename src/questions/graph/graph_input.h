// SPDX-License-Identifier: Apache-2.0
//
// What every sub-command of `lamina graph` does with its input: a file or the
// last dump of a folder, messages about it on stderr, the choice of a graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/dump.h"
#include "graph/folder.h"
#include "questions/asker.h"

namespace lamina::questions {

struct GraphInput {
  std::string path;  // the file, also when a folder was given
  graph::Dump dump;
  const graph::Graph* graph = nullptr;  // the chosen one, of `dump`

  // Name to show and to store: without folder.
  std::string FileName() const;
};

// The file to read, and says which where a folder was given.
Result<std::string> PickDump(const std::string& path, Asker& asker);

// Reads a dump, and says (Common::Say) what is wrong with it and what file
// beside it names its weights, unless it `is_quiet`.
Result<graph::Dump> ReadGraphDump(const std::string& path,
                                  const graph::ParseOptions& options,
                                  Asker& asker, bool is_quiet = false);

// Picks the file and the graph (`section`, or the default one), and says what
// was chosen where there was a choice, and what is wrong with the file.
Result<GraphInput> OpenGraph(const std::string& path,
                             const std::string& section, Asker& asker,
                             const graph::ParseOptions& options);

// "s72=1" as bindings of symbols to numbers of at least `least`.
Result<graph::Bindings> ParseBindings(const std::vector<std::string>& texts,
                                      int64_t least);

// Adds --dialect, which a check holds against the names that there are.
void AddDialectOption(Description& args, std::string& dialect);

}  // namespace lamina::questions
