// SPDX-License-Identifier: Apache-2.0
//
// What every sub-command of `lamina graph` does with its input: a file or the
// last dump of a folder, messages about it on stderr, the choice of a graph.
#pragma once

#include <string>

#include "cli/command.h"
#include "graph/dump.h"
#include "graph/folder.h"

namespace lamina::cli {

struct GraphInput {
  std::string path;  // the file, also when a folder was given
  graph::Dump dump;
  const graph::Graph* graph = nullptr;  // the chosen one, of `dump`
  // What a terminal was told of the file and of the choice.
  std::vector<Note> told;

  // Name to show and to store: without folder.
  std::string FileName() const;
};

// Reads a dump. What is wrong with it, and what file beside it names its
// weights, is said on stderr, but in a host, and joins `told`; nothing is
// without `told`.
Result<graph::Dump> ReadGraphDump(const std::string& path,
                                  const graph::ParseOptions& options,
                                  Common& common, std::vector<Note>* told);

// Picks the file and the graph (`section`, or the default one), tells on
// stderr what was chosen where there was a choice, and what is wrong with the
// file.
Result<GraphInput> OpenGraph(const std::string& path,
                             const std::string& section, Common& common,
                             const graph::ParseOptions& options);

// Adds --dialect, which a check holds against the names that there are.
void AddDialectOption(Arguments& args, std::string& dialect);

// A host sees no terminal: what was told there joins the notes.
void TellHost(const Common& common, const std::vector<Note>& told,
              ResultSet& result);

}  // namespace lamina::cli
