// SPDX-License-Identifier: Apache-2.0
//
// What could be fused in a graph: matches of known rules and forms that were
// mined, with the kernels that exist for them and what they are worth.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/fusion/kernel_lookup.h"
#include "graph/fusion/mining.h"
#include "graph/fusion/traffic.h"
#include "graph/graph.h"
#include "graph/layers/layers.h"
#include "graph/passes/log.h"
#include "graph/passes/rule_file.h"
#include "lamina/result.h"

namespace lamina::fusion {

// Kernel time of each node per step, by node id; empty: nothing measured.
struct Measured {
  std::vector<int64_t> node_ns;
  int64_t step_ns = 0;
  int64_t shortest_kernel_ns = 0;
  // The trace does not fit the graph well: savings are unsure.
  bool unsure = false;
};

struct CandidateOptions {
  size_t min_layers = 0;  // 0: half of the layers
  graph::Bindings bindings;
  const graph::RuleSet* rules = nullptr;
  const graph::GroupRules* groups = nullptr;
  const OpTable* ops = nullptr;
  const KernelLookup* lookup = nullptr;
  const graph::TransformLog* log = nullptr;  // may be null
  const Measured* measured = nullptr;        // may be null
  Memory memory;
};

// Where a candidate stands.
struct CandidatePlace {
  std::string layer;  // of its last node
  std::string nodes;  // in order of the graph, with blanks between
  uint32_t line = 0;  // of the first one
  std::optional<int64_t> measured_ns;
};

struct Candidate {
  std::string name;
  std::string kind;
  std::string rule;      // known rule; empty: mined
  std::string in_log;    // what the log says of the rule
  std::string contains;  // known rules whose matches it holds
  std::string pattern;   // lines
  size_t occurrences = 0;
  size_t layers = 0;
  std::string layer_names;  // "0-31"
  std::vector<std::string> anchors;
  std::vector<CandidatePlace> places;
  // A guard of the rule cannot be seen in a dump.
  bool possible = false;
  uint32_t first_line = 0;

  int64_t launches = 0;                // fewer per step
  int64_t bytes = 0;                   // fewer per step
  std::optional<int64_t> measured_ns;  // of its nodes per step
  std::optional<int64_t> saving_ns;    // at most per step
  std::string claim;  // what the saving is, or why there is none
  std::optional<double> percent_of_step;
  // What it saves beyond the candidates in front of it: places that share a
  // node with one of theirs count nothing.
  std::optional<int64_t> net_ns;
  // Its bytes need longer than the trace measured for its nodes.
  bool more_than_measured = false;

  std::vector<FoundKernel> kernels;
  std::vector<FoundKernel> not_fitting;  // with why not
  std::string recommendation;
  std::string settled_by;  // of "defer": the dump or test that ends the doubt
  std::vector<std::string> strengths;
  std::vector<std::string> weaknesses;
  std::vector<std::string> risks;
};

// Two candidates of which one place of each share a node.
struct Overlap {
  size_t a = 0;  // positions in the list, a in front of b
  size_t b = 0;
  size_t shared_places = 0;          // places of b
  std::optional<int64_t> saving_ns;  // of both together, at most
};

struct Candidates {
  std::vector<Candidate> list;  // ranked: known and not disabled, known, mined
  std::vector<Overlap> overlaps;  // by a, then b
  size_t known = 0;
  bool bounded = false;
  int64_t step_ns = 0;
  bool measured = false;
  bool keywords_dropped = false;     // the dialect prints no keywords
  std::string no_rules_for;          // dialect that rules say nothing of
  std::vector<std::string> assumed;  // symbols that were bound
  Memory memory;
};

Candidates FindCandidates(const graph::Graph& graph,
                          const CandidateOptions& options);

// Tables `candidates`, `candidate_places` and `candidate_kernels`, with notes.
ResultSet CandidateTables(const Candidates& found, const std::string& file,
                          size_t top);
// One section per candidate in the form of a proposal.
std::string CandidateMarkdown(const Candidates& found, const std::string& file,
                              size_t top);

// What speaks for a candidate and against it, and what to do with it.

// Whether the transform of a candidate is known and does not run.
bool IsSwitchedOff(const Candidate& c);

// Fill in_log, strengths, weaknesses, risks and the recommendation of a
// candidate whose worth is known. `log` may be null.
void JudgeKnown(const graph::Graph& graph, const graph::Rule& rule,
                const graph::TransformLog* log, Candidate& c);
void JudgeMined(const graph::Graph& graph, const Form& form, size_t min_layers,
                Candidate& c);

}  // namespace lamina::fusion
