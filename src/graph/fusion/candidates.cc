// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/candidates.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>

#include "base/counted.h"
#include "base/decimal.h"
#include "base/text.h"
#include "graph/fusion/census.h"
#include "graph/fusion/mining.h"
#include "graph/pattern/linear_form.h"
#include "graph/types.h"

namespace lamina::fusion {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::NodeKind;
using graph::Rule;

// Kernels of a chain of transforms: the op that a rule leaves behind, and what
// later rules make of it.
constexpr size_t kMostSteps = 4;
std::string Ranges(const std::set<uint32_t>& numbers) {
  std::string out;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const uint32_t first = *it;
    uint32_t last = first;
    while (++it != numbers.end() && *it == last + 1) last = *it;
    out += (out.empty() ? "" : ", ") + std::to_string(first);
    if (last > first) out += "-" + std::to_string(last);
  }
  return out;
}

class Finder {
 public:
  Finder(const Graph& graph, const CandidateOptions& options)
      : graph_(graph),
        options_(options),
        layers_(graph::FindLayers(graph, *options.groups)) {
    out_.measured = options.measured != nullptr;
    out_.memory = options.memory;
    bindings_ = ReferenceBindings(graph, options.bindings, &out_.assumed);
    std::vector<NodeId> all;
    for (const NodeId id : graph.nodes()) {
      if (graph[id].kind != NodeKind::kOp) continue;
      all.push_back(id);
      ops_here_.insert(graph.op(id));
    }
    const Traffic whole = Separate(graph, *options.ops, all, bindings_);
    out_.step_ns = options.measured != nullptr
                       ? options.measured->step_ns
                       : EstimateNs(static_cast<int64_t>(whole.kernels),
                                    whole.bytes(), options.memory);
    min_layers_ = options.min_layers > 0
                      ? options.min_layers
                      : std::max<size_t>(2, layers_.layers.size() / 2);
  }

  Candidates Run() {
    AddKnown();
    out_.known = out_.list.size();
    AddMined();
    return std::move(out_);
  }

 private:
  // --- known rules ---

  void AddKnown() {
    const graph::OpIndex index(graph_);
    graph::FindOptions find;
    find.layers = OwnLayers(graph_);
    find.linears = true;
    const RulesFor applies = RulesThatApply(graph_);
    if (applies == RulesFor::kNone) return;
    for (const Rule& rule : options_.rules->rules) {
      if (rule.alternatives.empty()) continue;
      const graph::RuleMatches found = graph::FindRule(index, rule, find);
      if (found.matches.empty()) continue;
      Candidate candidate;
      candidate.name = rule.name;
      candidate.rule = rule.name;
      candidate.kind = "known: " + rule.name;
      std::vector<std::vector<NodeId>> places;
      std::set<size_t> alternatives;
      for (const graph::RuleMatch& match : found.matches) {
        alternatives.insert(match.alternative);
        std::vector<NodeId> nodes = rule.counting == graph::Counting::kGroup
                                        ? Members(rule, match)
                                        : match.match.Nodes();
        std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
          return index.Position(a) < index.Position(b);
        });
        candidate.possible |=
            match.possible || applies == RulesFor::kAnotherDialect;
        for (const NodeId id : nodes) covered_[id].insert(&rule);
        places.push_back(std::move(nodes));
      }
      if (IsRename(places, applies)) continue;
      Describe(candidate, places);
      const bool gemms = rule.counting == graph::Counting::kGroup;
      Value(candidate, places, gemms);
      candidate.kernels = KernelsOf(rule, alternatives);
      SayWhatFollows(rule, places[0], candidate);
      JudgeKnown(graph_, rule, options_.log, candidate);
      out_.list.push_back(std::move(candidate));
    }
    std::stable_sort(out_.list.begin(), out_.list.end(), Better);
    // What runs comes before what is switched off.
    std::stable_partition(out_.list.begin(), out_.list.end(),
                          [](const Candidate& c) { return !IsSwitchedOff(c); });
  }

  static bool Better(const Candidate& a, const Candidate& b) {
    const int64_t x = a.saving_ns.value_or(-1);  // unknown: behind nothing
    const int64_t y = b.saving_ns.value_or(-1);
    if (x != y) return x > y;
    if (a.occurrences != b.occurrences) return a.occurrences > b.occurrences;
    return a.risks.size() < b.risks.size();
  }

  // What nodes launch one by one.
  struct Launched {
    size_t launches = 0;
    size_t ops = 0;     // that do more than convert or copy
    bool fused = true;  // each of these is one kernel already
  };
  Launched LaunchedBy(const std::vector<NodeId>& nodes) const {
    Launched out;
    for (const NodeId id : nodes) {
      if (!Launches(graph_, *options_.ops, id)) continue;
      ++out.launches;
      if (options_.ops->MayBeFree(graph_.op(id))) continue;
      ++out.ops;
      out.fused &= options_.ops->IsFused(graph_.op(id));
    }
    return out;
  }

  // Whether a rule puts one op in the place of one that is a kernel already
  // (or whose kernel another compiler chooses): no fusion.
  bool IsRename(const std::vector<std::vector<NodeId>>& places,
                RulesFor applies) const {
    return std::all_of(
        places.begin(), places.end(), [&](const std::vector<NodeId>& nodes) {
          const Launched one = LaunchedBy(nodes);
          return one.launches == 1 && ((one.ops == 1 && one.fused) ||
                                       applies == RulesFor::kAnotherDialect);
        });
  }

  // Whether there is nothing to fuse in a mined form: one launch at most, or
  // an op that is one kernel already with casts and copies around it.
  bool IsFusedAlready(const Form& form) const {
    const Launched all = LaunchedBy(form.occurrences[0]);
    return all.launches < 2 || (all.ops == 1 && all.fused);
  }

  // Softmax between two matrix products is attention: PyTorch has one op for
  // all three.
  void LookForAttention(const Form& form, Candidate& c) const {
    const std::vector<NodeId>& nodes = form.occurrences[0];
    const auto is = [&](NodeId id, std::string_view name) {
      return graph::MatchesTarget(graph_.op(id), name);
    };
    const bool softmax =
        std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
          return is(id, "aten.softmax") || is(id, "aten._softmax");
        });
    if (!softmax) return;
    const absl::flat_hash_set<NodeId> inside(nodes.begin(), nodes.end());
    const auto product = [&](NodeId id, bool ahead) {
      for (size_t hops = 0; hops < 8; ++hops) {
        if (graph_[id].kind != NodeKind::kOp) return false;
        if (is(id, "aten.matmul") || is(id, "aten.bmm")) return true;
        if (options_.ops->ClassOf(graph_.op(id)) != OpClass::kView &&
            !options_.ops->MayBeFree(graph_.op(id)))
          return false;
        const std::vector<NodeId> next =
            ahead ? graph_.Users(id) : graph_.Inputs(id);
        if (next.empty()) return false;
        id = next[0];
      }
      return false;
    };
    bool before = false;
    bool behind = false;
    for (const NodeId id : nodes) {
      for (const NodeId input : graph_.Inputs(id))
        before |= !inside.contains(input) && product(input, false);
      for (const NodeId user : graph_.Users(id))
        behind |= !inside.contains(user) && product(user, true);
    }
    if (!before || !behind) return;
    FoundKernel kernel =
        options_.lookup->ByName("aten.scaled_dot_product_attention");
    kernel.fit = Fit::kLayout;
    kernel.why_not = "takes the matrix products on both sides as well";
    c.kernels.insert(c.kernels.begin(), std::move(kernel));
  }

  std::vector<NodeId> Members(const Rule& rule,
                              const graph::RuleMatch& match) const {
    const graph::Pattern& pattern =
        rule.alternatives[match.alternative].pattern;
    const uint32_t slot = pattern.lines[0].operands[0].slot;
    std::vector<NodeId> out;
    for (const NodeId user : graph::UsersOrLinears(graph_, match.shared)) {
      if (!graph::HasForm(graph_, pattern, 0, user, slot, match.shared))
        continue;
      out.push_back(user);
      const auto form = graph::LinearOf(graph_, user);
      if (form && form->product.valid()) out.push_back(form->product);
    }
    return out.empty() ? match.match.Nodes() : out;
  }

  // Whether one of the alternatives leaves the op behind; yes when none of
  // them says what it leaves.
  static bool LeftBy(const Rule& rule, const std::set<size_t>& alternatives,
                     const std::string& op) {
    bool told = false;
    for (const size_t i : alternatives) {
      for (const graph::Statement& line : rule.alternatives[i].after) {
        for (const std::string& target : line.targets) {
          told |= !graph::IsOfPyTorch(target);
          if (target.find('{') != std::string::npos ||
              graph::MatchesTarget(target, op))
            return true;
        }
      }
    }
    return !told;
  }

  // A rule that only renames saves nothing; what follows it may. Of one op in
  // place of another a dump knows neither's time.
  void SayWhatFollows(const Rule& rule, const std::vector<NodeId>& place,
                      Candidate& c) const {
    if (!c.saving_ns || *c.saving_ns > 0 || options_.measured != nullptr)
      return;
    const auto ops = std::count_if(place.begin(), place.end(), [&](NodeId id) {
      return options_.ops->ClassOf(graph_.op(id)) != OpClass::kView;
    });
    for (const std::string& op : rule.produces) {
      const Rule* const next = RuleFor(op, rule);
      if (next == nullptr) continue;
      c.claim = "none by itself; enables " + next->name;
      return;
    }
    c.claim = "none";
    if (ops != 1) return;
    c.saving_ns.reset();
    c.percent_of_step.reset();
    c.claim = "unknown: one op in place of another";
  }

  // The op that a rule leaves behind and those that later rules put in its
  // place, each once.
  std::vector<FoundKernel> KernelsOf(
      const Rule& rule, const std::set<size_t>& alternatives) const {
    std::vector<FoundKernel> out;
    std::set<std::string> seen;
    const Rule* at = &rule;
    for (size_t step = 0; at != nullptr && step < kMostSteps; ++step) {
      const Rule* next = nullptr;
      for (const std::string& op : at->produces) {
        if (at == &rule && !LeftBy(rule, alternatives, op)) continue;
        if (!seen.insert(op).second) continue;
        FoundKernel kernel = options_.lookup->ByName(op);
        if (at != &rule)
          kernel.evidence +=
              (kernel.evidence.empty() ? "by " : "; by ") + at->name;
        out.push_back(std::move(kernel));
        if (next == nullptr) next = RuleFor(op, *at);
      }
      at = next;
    }
    // What leaves views and PyTorch's products behind needs no kernel: the
    // transform is what exists.
    const bool own = !std::all_of(rule.produces.begin(), rule.produces.end(),
                                  graph::IsOfPyTorch);
    if (!own) out.insert(out.begin(), options_.lookup->Transform(rule));
    return out;
  }

  // A later rule that runs unasked and replaces the op: alone, else with
  // others.
  const Rule* RuleFor(const std::string& op, const Rule& after) const {
    const Rule* with_others = nullptr;
    for (const Rule& rule : options_.rules->rules) {
      if (&rule == &after || rule.default_state == graph::DefaultState::kOff ||
          graph::StageRank(rule.stage) < graph::StageRank(after.stage))
        continue;
      for (const graph::Alternative& alternative : rule.alternatives) {
        const graph::Pattern& pattern = alternative.pattern;
        if (!Consumes(pattern, op)) continue;
        if (pattern.lines.size() == 1) return &rule;
        if (with_others == nullptr) with_others = &rule;
      }
    }
    return with_others;
  }

  // Whether a pattern takes an op, and the graph has its other ones.
  bool Consumes(const graph::Pattern& pattern, const std::string& op) const {
    bool takes = false;
    for (const graph::PatternLine& line : pattern.lines) {
      bool here = false;
      bool present = false;
      for (const std::string& target : line.targets) {
        here |= target == op;
        for (const std::string_view there : ops_here_)
          present |= graph::MatchesTarget(there, target);
      }
      takes |= here;
      if (!here && !present) return false;
    }
    return takes;
  }

  // --- mined forms ---

  void AddMined() {
    MiningOptions mining;
    mining.min_occurrences = std::max<size_t>(2, min_layers_);
    const Mined mined = MineForms(graph_, *options_.ops, mining);
    out_.bounded = mined.bounded;
    std::vector<std::pair<Candidate, const Form*>> rows;
    for (const Form& form : mined.forms) {
      std::string contains;
      if (IsFusedAlready(form) || IsKnown(form, contains)) continue;
      Candidate candidate;
      candidate.kind = Name(form.kind);
      candidate.contains = contains;
      Describe(candidate, form.occurrences);
      if (candidate.layers < min_layers_ &&
          layers_.layers.size() >= min_layers_)
        continue;
      const bool gemms = form.kind == FormKind::kSiblings;
      Value(candidate, form.occurrences, gemms);
      const std::vector<std::string> words =
          options_.lookup->WordsOf(graph_, form.occurrences[0]);
      candidate.name = NameOf(words, form);
      for (FoundKernel& kernel :
           options_.lookup->ByMeaning(graph_, form.occurrences[0], words)) {
        (kernel.score > 0 ? candidate.kernels : candidate.not_fitting)
            .push_back(std::move(kernel));
      }
      LookForAttention(form, candidate);
      JudgeMined(graph_, form, min_layers_, candidate);
      rows.emplace_back(std::move(candidate), &form);
    }
    std::stable_sort(
        rows.begin(), rows.end(),
        [](const auto& a, const auto& b) { return Better(a.first, b.first); });
    // Of forms that share most of their nodes the best comes first, and the
    // rest only where they occur more often.
    absl::flat_hash_map<NodeId, size_t> taken;  // most occurrences so far
    std::map<std::string, size_t> names;
    for (auto& [candidate, form] : rows) {
      const std::vector<NodeId>& nodes = form->occurrences.back();
      size_t overlap = 0;
      for (const NodeId id : nodes) {
        const auto at = taken.find(id);
        overlap += at != taken.end() && at->second >= candidate.occurrences;
      }
      if (2 * overlap > nodes.size()) continue;
      for (const auto& place : form->occurrences) {
        for (const NodeId id : place) {
          size_t& most = taken[id];
          most = std::max(most, candidate.occurrences);
        }
      }
      const size_t number = ++names[candidate.name];
      if (number > 1) candidate.name += "_" + std::to_string(number);
      out_.list.push_back(std::move(candidate));
    }
  }

  // Whether known rules cover every node of the form; those that cover some
  // are named.
  bool IsKnown(const Form& form, std::string& contains) const {
    bool all = true;
    std::set<std::string> names;
    for (const NodeId id : form.occurrences[0]) {
      const auto found = covered_.find(id);
      if (found == covered_.end()) {
        // Casts and copies around what a rule covers are no form of their own.
        all &= options_.ops->ClassOf(graph_.op(id)) == OpClass::kView ||
               options_.ops->MayBeFree(graph_.op(id));
        continue;
      }
      for (const Rule* const rule : found->second) names.insert(rule->name);
    }
    for (const std::string& name : names)
      contains += (contains.empty() ? "" : ", ") + name;
    return all;
  }

  std::string NameOf(const std::vector<std::string>& words,
                     const Form& form) const {
    std::string out;
    for (const std::string& word : words)
      out += (out.empty() ? "" : "_") + word;
    if (form.kind == FormKind::kSiblings)
      return fmt::format("merge_{}_linears", form.occurrences[0].size());
    return out.empty() ? "elementwise" : out;
  }

  // --- both ---

  void Describe(Candidate& c, const std::vector<std::vector<NodeId>>& places) {
    c.occurrences = places.size();
    c.pattern = FormText(graph_, places[0]);
    std::set<uint32_t> numbers;
    std::set<graph::Place> layers;
    for (const std::vector<NodeId>& nodes : places) {
      const NodeId last = nodes.back();
      c.anchors.emplace_back(graph_[last].name);
      const graph::Place place = layers_.PlaceOf(last);
      c.places.push_back(PlaceAt(nodes));
      if (place < 0 || place == graph::kEpilogue) continue;
      layers.insert(place);
      numbers.insert(layers_.layers[static_cast<size_t>(place)].index);
    }
    c.layers = layers.size();
    c.layer_names = Ranges(numbers);
    c.first_line = graph_[places[0].front()].line;
  }

  CandidatePlace PlaceAt(const std::vector<NodeId>& nodes) const {
    CandidatePlace out;
    out.layer = layers_.NameOf(layers_.PlaceOf(nodes.back()));
    out.line = graph_[nodes.front()].line;
    for (const NodeId id : nodes) {
      if (!out.nodes.empty()) out.nodes += ' ';
      out.nodes += graph_[id].name;
      if (options_.measured == nullptr) continue;
      out.measured_ns =
          out.measured_ns.value_or(0) + options_.measured->node_ns[id.value];
    }
    return out;
  }

  void Value(Candidate& c, const std::vector<std::vector<NodeId>>& places,
             bool gemms) {
    int64_t remaining = 0;
    int64_t kernels = 0;
    int64_t measured = 0;
    size_t unknown = 0;
    for (const std::vector<NodeId>& nodes : places) {
      const Saving saving = SavingOf(graph_, *options_.ops, nodes, bindings_);
      kernels += gemms ? 1
                       : static_cast<int64_t>(saving.kernels) -
                             static_cast<int64_t>(saving.launches);
      c.launches += gemms ? static_cast<int64_t>(nodes.size()) - 1
                          : static_cast<int64_t>(saving.launches);
      if (!gemms) c.bytes += saving.bytes;
      remaining += saving.remaining_bytes;
      unknown += saving.unknown;
      if (options_.measured == nullptr) continue;
      for (const NodeId id : nodes)
        measured += options_.measured->node_ns[id.value];
    }
    if (unknown > 0)
      c.weaknesses.push_back(
          fmt::format("{} values have no known size", unknown));
    if (options_.measured == nullptr && gemms) {
      c.claim = "unknown: what a larger GEMM takes is not in a dump";
    } else if (options_.measured == nullptr && unknown > 0) {
      c.claim = fmt::format("unknown: {} without a known size",
                            Counted(unknown, "value"));
    } else if (options_.measured == nullptr) {
      c.claim = "estimate";
      c.saving_ns = EstimateNs(c.launches, c.bytes, options_.memory);
      if (*c.saving_ns <= 0) c.claim = "none";
    } else {
      c.measured_ns = measured;
      c.claim = options_.measured->unsure ? "unsure" : "bound";
      if (measured == 0) {
        c.claim = "unknown: the trace has no kernel on its nodes";
        c.weaknesses.emplace_back("the trace has no kernel on its nodes");
      } else if (gemms) {
        c.claim = "unknown: what a larger GEMM takes is not in a dump";
        c.weaknesses.emplace_back("no saving is claimed without a measurement");
      } else {
        // The fused kernels move what remains at least, and none is shorter
        // than the shortest of the trace.
        const int64_t moved_ns = EstimateNs(0, remaining, options_.memory);
        const int64_t least =
            std::max(moved_ns, kernels * options_.measured->shortest_kernel_ns);
        c.saving_ns = std::max<int64_t>(0, measured - least);
        if (moved_ns > measured) {
          c.more_than_measured = true;
          c.weaknesses.push_back(
              fmt::format("its bytes need {} at least and its nodes took {}",
                          HumanTime(moved_ns), HumanTime(measured)));
        }
      }
    }
    if (c.saving_ns && out_.step_ns > 0) {
      c.percent_of_step = 100.0 * static_cast<double>(*c.saving_ns) /
                          static_cast<double>(out_.step_ns);
    }
  }

  const Graph& graph_;
  const CandidateOptions& options_;
  graph::Layers layers_;
  graph::Bindings bindings_;
  size_t min_layers_ = 2;
  std::set<std::string_view> ops_here_;
  absl::flat_hash_map<NodeId, std::set<const Rule*>> covered_;
  Candidates out_;
};

// Savings of places that share nodes cannot be added.
void FindOverlaps(Candidates& found) {
  // Candidates by node, and what the ones in front have taken.
  absl::flat_hash_map<std::string_view, std::vector<size_t>> holders;
  absl::flat_hash_set<std::string_view> taken;
  for (size_t i = 0; i < found.list.size(); ++i) {
    Candidate& c = found.list[i];
    size_t free = 0;
    std::map<size_t, size_t> shared;  // candidate in front: places
    std::vector<std::string_view> own;
    for (const CandidatePlace& place : c.places) {
      std::set<size_t> with;
      bool is_free = true;
      std::string_view names = place.nodes;
      while (!names.empty()) {
        const std::string_view name = TakeUntil(names, ' ');
        own.push_back(name);
        is_free &= !taken.contains(name);
        const auto at = holders.find(name);
        if (at != holders.end())
          with.insert(at->second.begin(), at->second.end());
      }
      free += is_free;
      for (const size_t other : with) ++shared[other];
    }
    const auto part = [&](size_t places) {
      return *c.saving_ns * static_cast<int64_t>(places) /
             static_cast<int64_t>(std::max<size_t>(c.places.size(), 1));
    };
    if (c.saving_ns) c.net_ns = part(free);
    for (const auto& [other, places] : shared) {
      Overlap overlap{other, i, places, std::nullopt};
      const auto& saving = found.list[other].saving_ns;
      if (saving && c.saving_ns)
        overlap.saving_ns = *saving + part(c.places.size() - places);
      found.overlaps.push_back(overlap);
    }
    for (const std::string_view name : own) {
      std::vector<size_t>& here = holders[name];
      if (here.empty() || here.back() != i) here.push_back(i);
      if (c.saving_ns) taken.insert(name);
    }
  }
  std::sort(found.overlaps.begin(), found.overlaps.end(),
            [](const Overlap& x, const Overlap& y) {
              return std::tie(x.a, x.b) < std::tie(y.a, y.b);
            });
}

}  // namespace

Candidates FindCandidates(const Graph& graph, const CandidateOptions& options) {
  Candidates out = Finder(graph, options).Run();
  out.keywords_dropped = graph.dialect.empty();
  if (RulesThatApply(graph) == RulesFor::kNone)
    out.no_rules_for = graph.dialect;
  FindOverlaps(out);
  return out;
}

}  // namespace lamina::fusion
