// SPDX-License-Identifier: Apache-2.0
//
// Which known fusions a dump holds: every rule against every graph of every
// file, with what nearly matches and why not.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/dump.h"
#include "graph/folder.h"
#include "graph/layers/layers.h"
#include "graph/passes/log.h"
#include "graph/passes/rule_file.h"
#include "lamina/result.h"

namespace lamina::fusion {

struct NearMiss {
  std::string rule;   // empty: metadata that a node lacks
  std::string layer;  // of the anchor
  std::string node;   // where the deviation is
  std::string other;  // the other user, of an extra_user
  std::string anchor;
  std::string miss;
  std::string evidence;
  uint32_t line = 0;  // of the node in the file
  size_t causes = 1;  // of the place, each a near miss of its own
  std::string with;   // the other causes
};

// One match.
struct MatchPlace {
  std::string layer;
  std::string nodes;  // in order of the graph, with blanks between
  bool possible = false;
  uint32_t line = 0;  // of the first node
};

struct LayerCount {
  std::string layer;
  size_t matches = 0;
  size_t possible = 0;
  std::vector<std::string> anchors;
};

// One rule in one graph.
struct RuleCount {
  const graph::Rule* rule = nullptr;
  size_t matches = 0;
  size_t possible = 0;
  std::vector<LayerCount> layers;  // in order of the graph
  std::vector<MatchPlace> places;
  std::vector<NearMiss> near_misses;  // a row per cause
  size_t near_places = 0;
  std::map<std::string, size_t> rejected;  // places by causes: "dtype+literal"
  size_t already = 0;  // ops that its replacement leaves behind
  size_t given_up = 0;
};

struct GraphCensus {
  std::string graph;
  std::string dialect;           // as Graph::dialect
  bool applicable = true;        // else no rule was tried
  bool unnamed = false;          // its weights are inputs that AOT numbered
  std::vector<RuleCount> rules;  // those with something to say
  std::vector<NearMiss> metadata;
};

struct FileCensus {
  graph::DumpFile file;
  graph::Header header;
  std::vector<GraphCensus> graphs;
  // Values that have shape and dtype, to tell where later dumps lost them.
  std::set<std::string, std::less<>> known;
  std::map<std::string, size_t, std::less<>> ops;  // nodes by op

  // Matches of a rule over all graphs.
  size_t Matches(const graph::Rule& rule) const;
};

struct CensusOptions {
  std::vector<std::string> rules;  // names; empty: all
  graph::OptionOf option;
  std::shared_ptr<const graph::GroupRules> groups;
};

// The rules of one graph.
GraphCensus TakeCensus(const graph::Graph& graph, const graph::RuleSet& rules,
                       const CensusOptions& options);
// `before` is the dump in front of it in a folder, or null.
FileCensus TakeCensus(const graph::DumpFile& file, const graph::Dump& dump,
                      const graph::RuleSet& rules, const CensusOptions& options,
                      const FileCensus* before = nullptr);

// Rules are written in the ops of AutoDeploy and of ATen, so they say nothing
// of graphs in those of XLA; of other graphs of PyTorch what they say is
// possible.
enum class RulesFor : uint8_t { kThis, kAnotherDialect, kNone };
RulesFor RulesThatApply(const graph::Graph& graph);

// A number per layer for each node, by the weights that it consumes itself;
// negative for none.
// Nodes without weights can be said to be of two layers, so they do not keep a
// match apart.
std::vector<int32_t> OwnLayers(const graph::Graph& graph);

// Why a transform finds less in the second run, by the dump in front of it in
// each (where no dump is of the transform: the one in which its rule matches
// most often). "metadata loss: 32 values without shape since 041_...", "pattern
// lost: aten.rsqrt 65 -> 1", or the class of near misses of which the second
// has most more: "extra_user (2 more)"; empty when the dumps say nothing.
std::string WhyFewer(const std::vector<FileCensus>& before,
                     const std::vector<FileCensus>& after,
                     const graph::Rule& rule);

// Tables `census_rules`, `near_misses`, `census`, `matches` and, for several
// files, `census_stages`; notes with conflicts between the log and the dumps.
// `log` may be null.
ResultSet CensusTables(const std::vector<FileCensus>& files,
                       const graph::RuleSet& rules,
                       const graph::TransformLog* log);

}  // namespace lamina::fusion
