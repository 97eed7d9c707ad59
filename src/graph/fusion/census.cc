// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/census.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/counted.h"
#include "graph/layers/names.h"
#include "graph/layers/rules.h"
#include "graph/passes/pass.h"
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
    find_.linears = true;
    elsewhere_ = RulesThatApply(graph) != RulesFor::kThis;
    size_t known = 0;
    size_t lacking = 0;
    for (const NodeId id : graph.nodes()) {
      if (graph[id].kind != graph::NodeKind::kOp) continue;
      ++(LacksMetadata(graph[id]) ? lacking : known);
    }
    mostly_known_ = graph.dialect.empty() && known > lacking;
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
      if (match.possible && LostToGuard(rule, match, out)) continue;
      const bool possible = match.possible || elsewhere_;
      // A group is where its input is used first.
      const NodeId anchor = match.match.anchor();
      LayerCount& layer = by_layer[layers_.PlaceOf(anchor)];
      ++layer.matches;
      layer.possible += possible;
      layer.anchors.emplace_back(graph_[anchor].name);
      out.places.push_back(PlaceOf(match));
      out.places.back().possible = possible;
      ++out.matches;
      out.possible += possible;
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
      const std::vector<graph::Deviation>& all = miss.match.deviations;
      std::set<std::string> causes;
      for (const graph::Deviation& one : all)
        causes.emplace(graph::Name(one.miss));
      for (const graph::Deviation& one : all)
        out.near_misses.push_back(CauseOf(rule, miss.match, one));
      std::string set;
      for (const std::string& cause : causes)
        set += (set.empty() ? "" : "+") + cause;
      ++out.rejected[set];
      ++out.near_places;
    }
    return out;
  }

  // Nodes without metadata that others of the graph, or the dump before, have.
  std::vector<NearMiss> Metadata(const FileCensus* before) const {
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
        if (peers.known > peers.lacking.size() || KnownToUser(id) ||
            mostly_known_ || HadIt(before, id))
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
      if (HadIt(before, id)) {
        miss.evidence = "no shape and dtype since " + before->file.name;
      } else if (KnownToUser(id)) {
        // No program writes this: uses print what the definition has.
        miss.evidence =
            "no shape and dtype, and its users still show them "
            "(stale_use: edited by hand)";
      } else {
        miss.evidence = "no shape and dtype, and other nodes have them";
      }
      out.push_back(std::move(miss));
    }
    return out;
  }

 private:
  NearMiss CauseOf(const graph::Rule& rule, const graph::Match& match,
                   const graph::Deviation& deviation) const {
    NearMiss near = MissAt(deviation.node);
    near.layer = layers_.NameOf(layers_.PlaceOf(match.anchor()));
    near.rule = rule.name;
    near.miss = graph::Name(deviation.miss);
    near.evidence = deviation.evidence;
    near.anchor = graph_[match.anchor()].name;
    near.causes = match.deviations.size();
    for (const graph::Deviation& other : match.deviations) {
      if (&other == &deviation) continue;
      near.with += (near.with.empty() ? "" : ", ") +
                   std::string(graph::Name(other.miss)) + ": " + other.evidence;
    }
    if (deviation.other.valid()) {
      const std::string_view user = graph_[deviation.other].name;
      near.other = user.empty() ? "output" : std::string(user);
    }
    return near;
  }

  // A match whose guard reads a value that lost its shape is none: a transform
  // cannot answer it either. In graphs without shapes it stays possible.
  bool LostToGuard(const graph::Rule& rule, const graph::RuleMatch& match,
                   RuleCount& out) const {
    if (!mostly_known_) return false;
    const graph::Pattern& pattern =
        rule.alternatives[match.alternative].pattern;
    const graph::GuardSummary guards =
        graph::CheckGuards(rule, graph_, pattern, match.match, options_.option);
    const bool reads =
        std::any_of(guards.unknown.begin(), guards.unknown.end(),
                    [](const graph::Guard* guard) {
                      return guard->visible == graph::Guard::Visible::kDump;
                    });
    if (!reads) return false;
    for (const graph::Binding& binding : match.match.slots) {
      if (!binding.node.valid() || !LacksMetadata(graph_[binding.node]))
        continue;
      graph::Match lost = match.match;
      lost.deviations = {{graph::Miss::kMetadataLoss, binding.node, NodeId(),
                          "a guard reads its shape or dtype, which is lost"}};
      out.near_misses.push_back(CauseOf(rule, lost, lost.deviations[0]));
      ++out.rejected[std::string(kMetadataLoss)];
      ++out.near_places;
      return true;
    }
    return false;
  }

  bool HadIt(const FileCensus* before, NodeId id) const {
    return before != nullptr && before->known.contains(graph_[id].name);
  }

  MatchPlace PlaceOf(const graph::RuleMatch& match) const {
    std::vector<NodeId> nodes = match.match.Nodes();
    std::sort(nodes.begin(), nodes.end(), [this](NodeId a, NodeId b) {
      return index_.Position(a) < index_.Position(b);
    });
    MatchPlace out;
    out.layer = layers_.NameOf(layers_.PlaceOf(match.match.anchor()));
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
  // Most values have shape and dtype: those without have lost them.
  bool mostly_known_ = false;
  bool elsewhere_ = false;  // the rules are made for another dialect
};

}  // namespace

RulesFor RulesThatApply(const graph::Graph& graph) {
  if (graph.dialect.empty()) return RulesFor::kThis;
  return graph.dialect == "mlir" || graph.dialect == "hlo"
             ? RulesFor::kNone
             : RulesFor::kAnotherDialect;
}

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

namespace {

// Inputs that AOT numbers are parameters as a rule; no weight says that nothing
// named them.
bool HasUnnamedWeights(const graph::Graph& graph) {
  if (graph.dialect.empty() || !graph.Weights().empty()) return false;
  for (const NodeId id : graph.nodes()) {
    const std::string_view name = graph[id].name;
    if (graph[id].kind == graph::NodeKind::kPlaceholder &&
        (name.starts_with("primals_") || name.starts_with("arg0_")))
      return true;
  }
  return false;
}

GraphCensus TakeCensus(const graph::Graph& graph, const graph::RuleSet& rules,
                       const CensusOptions& options, const FileCensus* before) {
  GraphCensus out;
  out.graph = graph.name();
  out.dialect = graph.dialect;
  out.applicable = RulesThatApply(graph) != RulesFor::kNone;
  if (!out.applicable) return out;
  out.unnamed = HasUnnamedWeights(graph);
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
  if (options.rules.empty()) out.metadata = counter.Metadata(before);
  return out;
}

}  // namespace

GraphCensus TakeCensus(const graph::Graph& graph, const graph::RuleSet& rules,
                       const CensusOptions& options) {
  return TakeCensus(graph, rules, options, nullptr);
}

FileCensus TakeCensus(const graph::DumpFile& file, const graph::Dump& dump,
                      const graph::RuleSet& rules, const CensusOptions& options,
                      const FileCensus* before) {
  FileCensus out;
  out.file = file;
  out.header = dump.header;
  for (const graph::Graph& graph : dump.graphs)
    out.graphs.push_back(TakeCensus(graph, rules, options, before));
  for (const graph::Graph& graph : dump.graphs) {
    for (const NodeId id : graph.nodes()) {
      const graph::ResultText result = graph::SplitResult(graph[id].result);
      if (graph::DTypeBytes(result.dtype)) out.known.emplace(graph[id].name);
      if (graph[id].kind == graph::NodeKind::kOp)
        ++out.ops[std::string(graph.op(id))];
    }
  }
  return out;
}

namespace {

// Places of near misses of a rule, by class.
std::map<std::string, size_t> MissesOf(const FileCensus& file,
                                       std::string_view rule) {
  std::map<std::string, size_t> out;
  for (const GraphCensus& graph : file.graphs) {
    for (const RuleCount& count : graph.rules) {
      if (count.rule->name != rule) continue;
      for (const auto& [miss, number] : count.rejected) out[miss] += number;
    }
  }
  return out;
}

// The number of the dump that a transform wrote; none: it wrote none.
std::optional<int64_t> NumberOf(const std::vector<FileCensus>& run,
                                std::string_view transform) {
  for (const FileCensus& file : run) {
    if (file.file.transform == transform) return file.file.number;
  }
  return std::nullopt;
}

// The dump that a transform begins with: the last one in front of `number`.
// Without a number it is the dump in which the rule matches most often, and of
// those without any match the one with most near misses.
const FileCensus* FrontOf(const std::vector<FileCensus>& run,
                          const graph::Rule& rule,
                          std::optional<int64_t> number) {
  const FileCensus* best = nullptr;
  if (number) {
    for (const FileCensus& file : run) {
      if (file.file.number < *number) best = &file;
    }
    if (best != nullptr) return best;
  }
  std::pair<size_t, size_t> most;
  for (const FileCensus& file : run) {
    std::pair<size_t, size_t> weight = {0, 0};
    for (const GraphCensus& graph : file.graphs) {
      for (const RuleCount& count : graph.rules)
        if (count.rule->name == rule.name) weight.first += count.matches;
    }
    for (const auto& [miss, number_of] : MissesOf(file, rule.name))
      weight.second += number_of;
    if (weight <= most) continue;
    most = weight;
    best = &file;
  }
  return best;
}

// Values without shape and dtype that have lost them, with the graph.
std::set<std::pair<size_t, std::string>> LostValues(const FileCensus& file) {
  std::set<std::pair<size_t, std::string>> out;
  for (size_t g = 0; g < file.graphs.size(); ++g) {
    for (const NearMiss& miss : file.graphs[g].metadata)
      out.emplace(g, miss.node);
  }
  return out;
}

// "metadata loss: 32 values without shape since 041_...": those that are lost
// in front of the transform in the second run alone; empty when there are none.
std::string LostMetadata(const std::vector<FileCensus>& after,
                         const FileCensus* front_a, const FileCensus& front_b) {
  auto lost = LostValues(front_b);
  if (front_a != nullptr) {
    for (const auto& value : LostValues(*front_a)) lost.erase(value);
  }
  if (lost.empty()) return {};
  const auto first =
      std::find_if(after.begin(), after.end(), [&lost](const FileCensus& file) {
        const auto here = LostValues(file);
        return std::any_of(
            lost.begin(), lost.end(),
            [&here](const auto& value) { return here.contains(value); });
      });
  return fmt::format("metadata loss: {} without shape since {}",
                     Counted(lost.size(), "value"), first->file.stem);
}

// "pattern lost: aten.rsqrt 65 -> 1": the op of the rule that lost the largest
// share of its nodes; empty when none lost half.
std::string LostOp(const FileCensus& before, const FileCensus& after,
                   const graph::Rule& rule) {
  const auto count = [](const FileCensus& file,
                        const std::vector<std::string>& targets) {
    size_t sum = 0;
    for (const auto& op : file.ops) {
      const bool one_of = std::any_of(
          targets.begin(), targets.end(), [&](const std::string& target) {
            return graph::MatchesTarget(op.first, target);
          });
      if (one_of) sum += op.second;
    }
    return sum;
  };
  std::string text;
  double least = 0.5;
  for (const graph::Alternative& one : rule.alternatives) {
    for (const graph::PatternLine& line : one.pattern.lines) {
      const size_t a = count(before, line.targets);
      const size_t b = count(after, line.targets);
      const double left = static_cast<double>(b) / static_cast<double>(a);
      if (a == 0 || left >= least) continue;
      least = left;
      text = fmt::format("pattern lost: {} {} -> {}", line.targets[0], a, b);
    }
  }
  return text;
}

}  // namespace

std::string WhyFewer(const std::vector<FileCensus>& before,
                     const std::vector<FileCensus>& after,
                     const graph::Rule& rule) {
  // A run that found nothing may have written no dump of it; the other one says
  // where it would stand.
  const std::optional<int64_t> number_a = NumberOf(before, rule.name);
  const std::optional<int64_t> number_b = NumberOf(after, rule.name);
  const FileCensus* const front_a =
      FrontOf(before, rule, number_a ? number_a : number_b);
  const FileCensus* const front_b =
      FrontOf(after, rule, number_b ? number_b : number_a);
  std::string name;
  size_t grown = 0;
  if (front_b != nullptr) {
    std::map<std::string, size_t> a;
    if (front_a != nullptr) a = MissesOf(*front_a, rule.name);
    for (const auto& [miss, number] : MissesOf(*front_b, rule.name)) {
      const size_t was = a[miss];
      if (number <= was || number - was <= grown) continue;
      grown = number - was;
      name = miss;
    }
  }
  if (name.find(kMetadataLoss) != std::string::npos) {
    std::string text = LostMetadata(after, front_a, *front_b);
    if (!text.empty()) return text;
  }
  if (front_a != nullptr) {
    // Where nothing is like the rule any more: the dump of the same transform.
    const auto same =
        std::find_if(after.begin(), after.end(), [&](const FileCensus& file) {
          return file.file.transform == front_a->file.transform;
        });
    const FileCensus& there = front_b != nullptr    ? *front_b
                              : same != after.end() ? *same
                                                    : after.back();
    if (std::string text = LostOp(*front_a, there, rule); !text.empty())
      return text;
  }
  return grown == 0 ? "" : fmt::format("{} ({} more)", name, grown);
}

}  // namespace lamina::fusion
