// SPDX-License-Identifier: Apache-2.0
//
// What the transforms of a run did to a dump, as tables and as a page.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/folder.h"
#include "graph/fusion/traffic.h"
#include "graph/layers/rules.h"
#include "graph/passes/pass.h"
#include "lamina/result.h"

namespace lamina::fusion {

class RewriteReport {
 public:
  // All arguments must live as long.
  RewriteReport(const OpTable& ops, const graph::DumpFile& file,
                const graph::PipelineConfig& config,
                const graph::PassRegistry& registry,
                const graph::GroupRules& groups, Memory memory);

  // The dump before the first transform.
  void Begin(const graph::Dump& dump);
  // The dump after a transform, and its text where that changed it; `written`
  // is the name of its file, or empty.
  void Add(const graph::PassReport& pass, const graph::Dump& dump,
           std::string_view text, int64_t number, const std::string& written);

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
  struct Line {
    std::string text;
    size_t number = 0;  // in the file, from 1
    std::string layer;
  };
  struct State {
    std::map<std::string, size_t> ops;
    Traffic traffic;
    // By graph and name of the value that a line defines.
    absl::flat_hash_map<std::pair<size_t, std::string>, Line> lines;
  };
  // A replacement; numbers are 0 where a dump shows no such line.
  struct Change {
    std::string layer;
    std::string anchor;  // the last value that is gone
    size_t line_before = 0;
    size_t removed = 0;  // lines
    size_t line_after = 0;
    size_t added = 0;
  };
  // The first place of a form in full.
  struct Example {
    size_t form = 0;
    std::vector<std::string> removed;
    std::vector<std::string> added;
  };
  struct Step {
    graph::PassReport pass;
    int64_t number = 0;
    std::string file;
    Traffic before;
    Traffic after;
    std::vector<std::pair<std::string, int64_t>> ops;  // change of the count
    std::vector<Example> examples;
    std::vector<Change> places;
  };
  // `text` is the dump as its file has it.
  State Look(const graph::Dump& dump, std::string_view text);
  void AddPlaces(const State& next, Step& step) const;

  const OpTable& ops_;
  const graph::DumpFile& file_;
  const graph::PipelineConfig& config_;
  const graph::PassRegistry& registry_;
  const graph::GroupRules& groups_;
  Memory memory_;
  State now_;
  std::vector<Step> steps_;
  std::vector<std::string> assumed_;
  std::vector<std::pair<std::string, std::string>> facts_;
  std::string command_;
};

}  // namespace lamina::fusion
