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
  // The page: per transform what it changed, and the first place in full.
  std::string Markdown() const;

 private:
  struct State {
    std::map<std::string, size_t> ops;
    Traffic traffic;
    std::vector<std::string> lines;
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
};

}  // namespace lamina::fusion
