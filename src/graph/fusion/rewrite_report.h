// SPDX-License-Identifier: Apache-2.0
//
// What the transforms of a run did to a dump, as tables and as a page.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/folder.h"
#include "graph/fusion/traffic.h"
#include "graph/passes/pass.h"
#include "lamina/result.h"

namespace lamina::fusion {

class RewriteReport {
 public:
  // All arguments must live as long.
  RewriteReport(const OpTable& ops, const graph::DumpFile& file,
                const graph::PipelineConfig& config,
                const graph::PassRegistry& registry, Memory memory);

  // The dump before the first transform.
  void Begin(const graph::Dump& dump);
  // The dump after a transform; `written` is the name of its file, or empty.
  void Add(const graph::PassReport& pass, const graph::Dump& dump,
           int64_t number, const std::string& written);

  // Tables `rewrite` and `rewrite_ops`, with notes.
  ResultSet Finish() const;
  // How the run was asked for: names and values for the head of the page, such
  // as the configuration, and the command that repeats it.
  void Describe(std::vector<std::pair<std::string, std::string>> facts,
                std::string command);
  // The page: what was run, per transform what it changed, where, and what it
  // left and why; the first place in full; what did not run; totals.
  std::string Markdown() const;

 private:
  struct State {
    std::map<std::string, size_t> ops;
    Traffic traffic;
    std::vector<std::string> lines;
  };
  // Lines that follow each other and are gone, as positions in the dump before.
  struct Change {
    size_t line = 0;  // of the first one, from 1
    size_t lines = 0;
    std::string first;  // name of the first and of the last value
    std::string last;
  };
  struct Step {
    graph::PassReport pass;
    int64_t number = 0;
    std::string file;
    Traffic before;
    Traffic after;
    std::vector<std::pair<std::string, int64_t>> ops;  // change of the count
    std::vector<std::string> removed;  // lines of the first place
    std::vector<std::string> added;
    std::vector<Change> places;
  };
  State Look(const graph::Dump& dump);

  const OpTable& ops_;
  const graph::DumpFile& file_;
  const graph::PipelineConfig& config_;
  const graph::PassRegistry& registry_;
  Memory memory_;
  State now_;
  std::vector<Step> steps_;
  std::vector<std::string> assumed_;
  std::vector<std::pair<std::string, std::string>> facts_;
  std::string command_;
};

}  // namespace lamina::fusion
