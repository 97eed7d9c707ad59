// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/census.h"

#include <algorithm>

#include "graph/layers/names.h"
#include "graph/passes/pattern_pass.h"
#include "graph/target.h"
#include "graph/types.h"

namespace lamina::fusion {
namespace {

using graph::NodeId;

// A node without shape and dtype, of an op that has them elsewhere.
constexpr std::string_view kMetadataLoss = "metadata_loss";

bool LacksMetadata(const graph::Node& node) {
  const graph::ResultText result = graph::SplitResult(node.result);
  return !result.tuple && result.shape == "?" &&
         (result.dtype == "N/A" || result.dtype == "unknown" ||
          result.dtype == "None");
}

class GraphCounter {
 public:
  GraphCounter(const graph::Graph& graph, const CensusOptions& options)
      : graph_(graph),
        options_(options),
        index_(graph),
        layers_(graph::FindLayers(graph, *options.groups)) {
    find_.near_misses = true;
    find_.option = options.option;
    find_.layers = OwnLayers(graph);
  }

  RuleCount Count(const graph::Rule& rule) const {
    RuleCount out;
    out.rule = &rule;
    for (const std::string& target : rule.produces) {
      const std::string targets[] = {target};
      out.already += index_.Candidates(targets).size();
    }
    if (rule.alternatives.empty()) {
      out.matches = 0;
      return out;
    }
    const graph::RuleMatches found = graph::FindRule(index_, rule, find_);
    out.given_up = found.given_up;
    std::map<graph::Place, LayerCount> by_layer;
    for (const graph::RuleMatch& match : found.matches) {
      // A group is where its input is used first.
      const NodeId anchor = match.match.anchor();
      LayerCount& layer = by_layer[layers_.PlaceOf(anchor)];
      ++layer.matches;
      layer.possible += match.possible;
      layer.anchors.emplace_back(graph_[anchor].name);
      out.places.push_back(PlaceOf(match));
      ++out.matches;
      out.possible += match.possible;
    }
    for (auto& [place, layer] : by_layer) {
      layer.layer = layers_.NameOf(place);
      out.layers.push_back(std::move(layer));
    }
    if (rule.counting == graph::Counting::kFixedPoint && out.matches > 0) {
      const size_t total = graph::CountReplacements(graph_, rule);
      if (total > 0) out.matches = total;
    }
    for (const graph::RuleMatch& miss : found.near_misses) {
      const graph::Deviation& deviation = *miss.match.deviation;
      NearMiss near = MissAt(deviation.node);
      near.layer = layers_.NameOf(layers_.PlaceOf(miss.match.anchor()));
      near.rule = rule.name;
      near.miss = graph::Name(deviation.miss);
      near.evidence = deviation.evidence;
      near.anchor = graph_[miss.match.anchor()].name;
      if (deviation.other.valid()) {
        const std::string_view user = graph_[deviation.other].name;
        near.other = user.empty() ? "output" : std::string(user);
      }
      ++out.rejected[near.miss];
      out.near_misses.push_back(std::move(near));
    }
    return out;
  }

  // Nodes without metadata whose users or peers know it.
  std::vector<NearMiss> Metadata() const {
    struct Peers {
      size_t known = 0;
      std::vector<NodeId> lacking;
    };
    std::map<StringId, Peers> by_op;
    for (const NodeId id : graph_.nodes()) {
      if (graph_[id].kind != graph::NodeKind::kOp) continue;
      Peers& peers = by_op[graph_[id].op];
      if (LacksMetadata(graph_[id])) {
        peers.lacking.push_back(id);
      } else {
        ++peers.known;
      }
    }
    std::vector<NodeId> lost;
    for (const auto& [op, peers] : by_op) {
      for (const NodeId id : peers.lacking) {
        if (peers.known > peers.lacking.size() || KnownToUser(id))
          lost.push_back(id);
      }
    }
    std::sort(lost.begin(), lost.end(), [this](NodeId a, NodeId b) {
      return index_.Position(a) < index_.Position(b);
    });
    std::vector<NearMiss> out;
    for (const NodeId id : lost) {
      NearMiss miss = MissAt(id);
      miss.miss = kMetadataLoss;
      miss.anchor = miss.node;
      miss.evidence =
          "no shape and dtype, and " +
          std::string(KnownToUser(id) ? "its users still show them"
                                      : "other nodes of the op have them");
      out.push_back(std::move(miss));
    }
    return out;
  }

 private:
  MatchPlace PlaceOf(const graph::RuleMatch& match) const {
    std::vector<NodeId> nodes = match.match.Nodes();
    std::sort(nodes.begin(), nodes.end(), [this](NodeId a, NodeId b) {
      return index_.Position(a) < index_.Position(b);
    });
    MatchPlace out;
    out.layer = layers_.NameOf(layers_.PlaceOf(match.match.anchor()));
    out.possible = match.possible;
    out.line = graph_[nodes.front()].line;
    for (const NodeId id : nodes) {
      if (!out.nodes.empty()) out.nodes += ' ';
      out.nodes += graph_[id].name;
    }
    return out;
  }

  bool KnownToUser(NodeId id) const {
    bool known = false;
    graph_.ForEachUse(id, [&](graph::OperandId, const graph::Operand& use) {
      const std::string_view text = use.text();
      const size_t at = text.find(" : ");
      if (use.nested || at == std::string_view::npos) return;
      const graph::ResultText seen = graph::SplitResult(text.substr(at + 3));
      known |= seen.shape != "?" && graph::DTypeBytes(seen.dtype).has_value();
    });
    return known;
  }

  NearMiss MissAt(NodeId id) const {
    NearMiss out;
    out.node = graph_[id].name;
    out.line = graph_[id].line;
    out.layer = layers_.NameOf(layers_.PlaceOf(id));
    return out;
  }

  const graph::Graph& graph_;
  const CensusOptions& options_;
  graph::OpIndex index_;
  graph::Layers layers_;
  graph::FindOptions find_;
};

}  // namespace

std::vector<int32_t> OwnLayers(const graph::Graph& graph) {
  std::vector<int32_t> out(graph.size(), -1);
  std::map<std::pair<std::string_view, uint32_t>, int32_t> numbers;
  std::vector<NodeId> inputs;
  for (const NodeId id : graph.nodes()) {
    graph.Inputs(id, inputs);
    for (const NodeId input : inputs) {
      if (graph[input].kind != graph::NodeKind::kWeight) continue;
      const auto name = graph::ParseLayerName(graph[input].name);
      if (!name) continue;
      const int32_t number =
          numbers
              .try_emplace({name->stack, name->index},
                           static_cast<int32_t>(numbers.size()))
              .first->second;
      out[id.value] = std::max(out[id.value], number);
    }
  }
  return out;
}

size_t FileCensus::Matches(const graph::Rule& rule) const {
  size_t sum = 0;
  for (const GraphCensus& graph : graphs) {
    for (const RuleCount& count : graph.rules) {
      if (count.rule == &rule) sum += count.matches;
    }
  }
  return sum;
}

GraphCensus TakeCensus(const graph::Graph& graph, const graph::RuleSet& rules,
                       const CensusOptions& options) {
  GraphCensus out;
  out.graph = graph.name();
  const GraphCounter counter(graph, options);
  for (const graph::Rule& rule : rules.rules) {
    if (!options.rules.empty() &&
        std::find(options.rules.begin(), options.rules.end(), rule.name) ==
            options.rules.end())
      continue;
    RuleCount count = counter.Count(rule);
    if (count.matches > 0 || !count.near_misses.empty() || count.already > 0 ||
        count.given_up > 0)
      out.rules.push_back(std::move(count));
  }
  if (options.rules.empty()) out.metadata = counter.Metadata();
  return out;
}

FileCensus TakeCensus(const graph::DumpFile& file, const graph::Dump& dump,
                      const graph::RuleSet& rules,
                      const CensusOptions& options) {
  FileCensus out;
  out.file = file;
  out.header = dump.header;
  for (const graph::Graph& graph : dump.graphs)
    out.graphs.push_back(TakeCensus(graph, rules, options));
  return out;
}

std::string GrownMiss(const std::vector<FileCensus>& before,
                      const std::vector<FileCensus>& after,
                      std::string_view rule) {
  const auto rejected = [rule](const std::vector<FileCensus>& run) {
    std::map<std::string, size_t> best;
    size_t most = 0;
    for (const FileCensus& file : run) {
      std::map<std::string, size_t> here;
      size_t matches = 0;
      for (const GraphCensus& graph : file.graphs) {
        for (const RuleCount& count : graph.rules) {
          if (count.rule->name != rule) continue;
          matches += count.matches;
          for (const auto& [miss, number] : count.rejected)
            here[miss] += number;
        }
      }
      // Without any match the dump with most near misses is the nearest.
      size_t weight = matches * 1000000;
      for (const auto& [miss, number] : here) weight += number;
      if (weight <= most) continue;
      most = weight;
      best = std::move(here);
    }
    return best;
  };
  const std::map<std::string, size_t> a = rejected(before);
  const std::map<std::string, size_t> b = rejected(after);
  std::string name;
  size_t grown = 0;
  for (const auto& [miss, number] : b) {
    const auto old = a.find(miss);
    const size_t was = old == a.end() ? 0 : old->second;
    if (number <= was || number - was <= grown) continue;
    grown = number - was;
    name = miss;
  }
  return grown == 0 ? "" : name + " (" + std::to_string(grown) + " more)";
}

}  // namespace lamina::fusion
