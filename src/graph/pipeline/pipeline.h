// SPDX-License-Identifier: Apache-2.0
//
// A folder of dumps as a sequence of changes: which transform changed what.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/folder.h"
#include "graph/verify.h"
#include "lamina/result.h"

namespace lamina::graph {

struct Step {
  DumpFile file;
  Header header;
  std::string section;
  Counts counts;
  std::map<std::string, size_t> ops;
  // The graph differs from that of the step before in more than names and
  // addresses. True for the first.
  bool changed = true;
  bool incomplete = false;
};

struct Pipeline {
  std::vector<Step> steps;
  std::vector<Note> notes;
};

// Reads every dump. `section` names the graph to follow; "" takes the default
// one of each file. Files that cannot be read, or lack the section, are notes.
// Errors: no dump could be read.
Result<Pipeline> ReadPipeline(const std::vector<DumpFile>& files,
                              const std::string& section,
                              const ParseOptions& options = {});

// Tables `pipeline` (a row per step) and `pipeline_ops` (a row per op that came
// or went, with `all_ops` per op whose count changed), with the notes. Steps
// that changed nothing are left out unless `all`.
ResultSet PipelineTables(const Pipeline& pipeline, bool all, bool all_ops);

}  // namespace lamina::graph
