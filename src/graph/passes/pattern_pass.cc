// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/pattern_pass.h"

#include <algorithm>

#include "graph/dump.h"
#include "graph/passes/merge_linears.h"
#include "graph/print.h"

namespace lamina::graph {
namespace {

// A condition that neither the dump nor the configuration answers.
const Guard* OpenGuard(const GuardSummary& guards,
                       const ApplyOptions& options) {
  for (const Guard* const guard : guards.unknown) {
    // A transform that is configured to run is configured by that.
    const bool configured =
        guard->visible == Guard::Visible::kConfig && guard->check.empty();
    if (!configured && !options.assume.contains(guard->id)) return guard;
  }
  return nullptr;
}

class RuleApplier {
 public:
  RuleApplier(Graph& graph, const Rule& rule, const ApplyOptions& options)
      : graph_(graph), rule_(rule), options_(options) {
    state_.option = options.option;
  }

  Applied Run() {
    RunOnce();
    if (rule_.counting != Counting::kFixedPoint) return std::move(out_);
    // A rule that replaces what it has put there would never end. One that
    // removes has at most one replacement per node to make.
    const size_t most = graph_.size();
    for (size_t rounds = 1; round_ > 0; ++rounds) {
      if (rounds == kMaxRounds || out_.matches > most) {
        ++out_.left["the rule matches what it puts in place"];
        break;
      }
      RunOnce();
    }
    return std::move(out_);
  }

 private:
  static constexpr size_t kMaxRounds = 1000;

  void RunOnce() {
    round_ = 0;
    const OpIndex index(graph_);
    FindOptions find;
    find.option = options_.option;
    // Nodes that this pass made have no layer.
    find.layers = options_.layers;
    if (!find.layers.empty()) find.layers.resize(graph_.size(), -1);
    const RuleMatches found = FindRule(index, rule_, find);
    std::vector<Finder> finders;
    for (const Alternative& alternative : rule_.alternatives)
      finders.emplace_back(index, alternative.pattern);
    for (const RuleMatch& match : found.matches) {
      const Alternative& alternative = rule_.alternatives[match.alternative];
      if (alternative.after.empty()) {
        ++out_.left["the rule does not say what replaces this form"];
        continue;
      }
      Replace(finders[match.alternative], alternative, match.match.anchor());
    }
  }

  void Replace(Finder& finder, const Alternative& alternative, NodeId anchor) {
    if (graph_[anchor].erased) return;
    // An earlier replacement may have changed what is around the anchor.
    const Guard* open = nullptr;
    const auto accept = [&](Match& match) {
      const GuardSummary guards = CheckGuards(
          rule_, graph_, alternative.pattern, match, options_.option);
      open = OpenGuard(guards, options_);
      return guards.failed.empty();
    };
    const std::optional<Match> match = finder.Find(anchor, accept);
    if (!match) return;
    if (open != nullptr) {
      ++out_.left["guard '" + open->id + "' is not visible in a dump"];
      return;
    }
    const PlaceNotes notes(graph_);
    const Replaced replaced =
        graph::Replace(graph_, alternative, *match, state_);
    if (!replaced.done) {
      ++out_.left[replaced.reason];
      return;
    }
    ++out_.matches;
    ++round_;
    out_.places.push_back(notes.Done(
        static_cast<size_t>(&alternative - rule_.alternatives.data())));
  }

  Graph& graph_;
  const Rule& rule_;
  const ApplyOptions& options_;
  RewriteState state_;
  Applied out_;
  size_t round_ = 0;
};

}  // namespace

Replacement PlaceNotes::Done(size_t form) const {
  Replacement out;
  out.form = form;
  for (size_t i = erased_; i < graph_.erased().size(); ++i) {
    const NodeId id = graph_.erased()[i];
    if (id.value < size_) out.removed.emplace_back(graph_[id].name);
  }
  for (size_t i = size_; i < graph_.size(); ++i) {
    const Node& node = graph_[NodeId(static_cast<uint32_t>(i))];
    if (!node.erased && node.kind == NodeKind::kOp)
      out.added.emplace_back(node.name);
  }
  return out;
}

bool CanRewrite(const Rule& rule) {
  if (!rule.native.empty() || !rule.rewrites.empty()) return true;
  return std::any_of(rule.alternatives.begin(), rule.alternatives.end(),
                     [](const Alternative& one) { return !one.after.empty(); });
}

Applied ApplyRule(Graph& graph, const Rule& rule, const ApplyOptions& options) {
  if (rule.native == kMergeLinears) return MergeLinears(graph, rule, options);
  if (rule.rewrites.empty()) return RuleApplier(graph, rule, options).Run();
  Rule longer = rule;
  longer.alternatives = rule.rewrites;
  return RuleApplier(graph, longer, options).Run();
}

size_t CountReplacements(const Graph& graph, const Rule& rule) {
  std::string text = HeaderText({}) + SectionHead(graph.name());
  // The head and tail of a section are no lines of it.
  for (const NodeId id : graph.nodes()) {
    AppendNode(text, graph, id);
    text += '\n';
  }
  auto copy = ParseDump("copy", std::move(text));
  if (!copy || copy->graphs.empty()) return 0;
  return ApplyRule(copy->graphs[0], rule, {}).matches;
}

}  // namespace lamina::graph
