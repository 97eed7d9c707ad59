// SPDX-License-Identifier: Apache-2.0
//
// Folders of dumps: one file per transform of a run, named
// <number>_<stage>_<transform>.txt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/dump.h"

namespace lamina::graph {

struct DumpFile {
  std::string path;
  std::string name;  // without folder
  std::string stem;  // without folder and .txt, .txt.gz, .txt.zst
  int64_t number = 0;
  // As the name says; empty stage when it is none that AutoDeploy has.
  std::string stage;
  std::string transform;
};

// Takes a file name apart. False for what is not named like a dump.
bool ParseDumpName(std::string_view path, DumpFile& file);

// The dumps of a folder by number (1000 comes behind 999), then by name;
// none may be replaced by an output. Errors: no folder, no dump in it.
Result<std::vector<DumpFile>> ListDumps(const std::string& folder);

// The graphs that dynamo made beside `path`, a graph of AOT or of Inductor with
// the same words in front of what it is: those with a lower number, the nearest
// first, or the only one. Graphs of AOT name no parameters, their inputs are
// those of one of these: of the nearest for what is compiled at once; a
// backward graph is compiled later, behind graphs of other frames. Empty: none,
// or `path` is no such graph.
std::vector<std::string> SourceGraphsBeside(const std::string& path);

// `path`, or the last dump of it when it is a folder.
Result<std::string> PickDump(const std::string& path);

// File name without folder and without .txt, .txt.gz, .txt.zst.
std::string StemOf(std::string_view path);

// A sentence when file name and header disagree; empty when they agree. The
// header is right then: somebody renamed the file.
std::string NameConflict(const DumpFile& file, const Header& header);

}  // namespace lamina::graph
