// SPDX-License-Identifier: Apache-2.0
//
// Passes by name, and running them in the order of a configuration.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dump.h"
#include "graph/passes/config.h"
#include "graph/passes/log.h"
#include "graph/passes/pattern_pass.h"
#include "graph/passes/rule_file.h"

namespace lamina::graph {

// A change of one graph.
struct Pass {
  std::string name;
  std::string stage;
  // What a match counts, for people.
  std::string counts;
  // Rules that it applies; empty for passes that are code alone.
  std::vector<const Rule*> rules;
  std::function<Applied(Graph&, const ApplyOptions&)> run;
};

// All passes: one per rule that says what it puts in place, and those that are
// code. The rules must live longer.
class PassRegistry {
 public:
  explicit PassRegistry(const RuleSet& rules);
  const Pass* Find(std::string_view name) const;
  const std::vector<Pass>& passes() const { return passes_; }

 private:
  std::vector<Pass> passes_;
};

// What one transform did to a dump.
struct PassReport {
  LogEntry entry;
  PassTime time;
  bool changed = false;
  size_t nodes_before = 0;
  size_t nodes_after = 0;
  // Matches that were left, by reason; violations that the verifier found.
  std::map<std::string, size_t> left;
  std::vector<std::string> violations;
  std::vector<Replacement> places;  // one per replacement
  std::string note;                 // why it did not run
};

struct RunOptions {
  std::set<std::string> assume;
  // Called after each transform with the dump as it is then.
  std::function<Status(const PassReport&, const Dump&)> after;
};

// Runs the transforms of a configuration over every graph of a dump. A
// transform without a pass is reported as unknown and does nothing. Errors:
// a pass broke the graph (unless skip_on_error), or `after` failed.
Result<std::vector<PassReport>> RunPasses(Dump& dump,
                                          const PipelineConfig& config,
                                          const PassRegistry& registry,
                                          const RunOptions& options);

}  // namespace lamina::graph
