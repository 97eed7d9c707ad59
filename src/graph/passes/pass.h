// SPDX-License-Identifier: Apache-2.0
//
// A rule as a change of a graph, passes by name, and running them in the order
// of a configuration.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/dump.h"
#include "graph/passes/config.h"
#include "graph/passes/log.h"
#include "graph/passes/rule_file.h"
#include "graph/pattern/rewrite.h"
#include "graph/pattern/rule.h"

namespace lamina::graph {

// A rule as a change of a graph.

struct ApplyOptions {
  OptionOf option;
  // Ids of guards that a dump cannot answer and that the user vouches for.
  std::set<std::string> assume;
  // Layer of each node by id, as in FindOptions.
  std::vector<int32_t> layers;
};

// What is gone and what came, by name.
struct Replacement {
  size_t graph = 0;  // of the dump
  size_t form = 0;   // of the alternatives of the rule
  std::vector<std::string> removed;
  std::vector<std::string> added;
};

// Notes a replacement: made in front of it.
class PlaceNotes {
 public:
  explicit PlaceNotes(const Graph& graph)
      : graph_(graph), size_(graph.size()), erased_(graph.erased().size()) {}
  Replacement Done(size_t form = 0) const;

 private:
  const Graph& graph_;
  size_t size_;
  size_t erased_;
};

struct Applied {
  size_t matches = 0;               // replacements
  std::vector<Replacement> places;  // one each
  // Matches that were left, by reason.
  std::map<std::string, size_t> left;
};

// Whether the rule says what to put in place of its matches.
bool CanRewrite(const Rule& rule);

// Replaces the matches of a rule in order; where two overlap the first wins.
// With Counting::kFixedPoint until none is left.
Applied ApplyRule(Graph& graph, const Rule& rule, const ApplyOptions& options);

// How many replacements ApplyRule() would make, without changing the graph.
size_t CountReplacements(const Graph& graph, const Rule& rule);

// The native pass behind the rules for linears that share an input: one linear
// over the joined weight, and one piece of its result per old linear. How many
// there are is not fixed, so lines of a rule cannot say it.

inline constexpr std::string_view kMergeLinears = "merge_linears";

// Pieces are taken with narrow when other users of the input are allowed (no
// guard asks for all_users), else with one split.
Applied MergeLinears(Graph& graph, const Rule& rule,
                     const ApplyOptions& options);

// Passes by name, and running them in the order of a configuration.

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
