// SPDX-License-Identifier: Apache-2.0

#include "graph/passes/pass.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "graph/dump.h"
#include "graph/print.h"
#include "graph/types.h"
#include "graph/verify.h"

namespace lamina::graph {

namespace {

// One linear of a group.
struct Member {
  NodeId node;
  NodeId weight;
  int64_t rows = 0;  // of the weight: width of the result
};

class Merger {
 public:
  Merger(Graph& graph, const Rule& rule) : graph_(graph), rule_(rule) {
    split_ = std::any_of(
        rule.guards.begin(), rule.guards.end(), [](const Guard& guard) {
          return !guard.check.empty() && guard.check[0].text == "all_users";
        });
  }

  // False: why not is in `reason`.
  bool Merge(NodeId input, std::string& reason) {
    added_.clear();
    if (!Collect(input, reason)) return false;
    const PlaceNotes notes(graph_);
    std::vector<NodeId> users;
    std::vector<NodeId> inputs = {input};
    for (const Member& member : members_) {
      for (const NodeId user : graph_.Users(member.node)) users.push_back(user);
    }
    const NodeId place = PlaceFor(graph_, inputs, users, members_[0].node);
    if (!place.valid()) {
      reason = "an operand is defined behind a user of an output";
      return false;
    }
    const std::string shape(SplitResult(graph_[members_[0].node].result).shape);
    const std::string dtype(SplitResult(graph_[members_[0].node].result).dtype);
    const std::string head = shape.substr(0, shape.rfind('x') + 1);
    int64_t rows = 0;
    for (const Member& member : members_) rows += member.rows;
    const NodeId whole =
        Add(place, "auto_deploy.torch_linear_simple.default",
            fmt::format("{}, %{} : {}x{} : {}, None", UseOf(graph_, input),
                        graph_.FreshName(fmt::format("fused_weight_{}", made_)),
                        rows, columns_,
                        SplitResult(graph_[members_[0].weight].result).dtype),
            fmt::format("{}{} : {}", head, rows, dtype));
    if (!whole.valid() || !AddPieces(place, whole, head, dtype)) {
      for (; !added_.empty(); added_.pop_back())
        EraseUnused(graph_, {added_.back()});
      reason = "a new line is not one of a dump";
      return false;
    }
    for (const Member& member : members_) EraseUnused(graph_, {member.node});
    ++made_;
    place_ = notes.Done();
    return true;
  }

  // What the last Merge() that returned true did.
  const Replacement& place() const { return place_; }

 private:
  // Beyond this a shape is corrupt; sums stay far from overflow.
  static constexpr int64_t kMostRows = int64_t{1} << 40;

  bool Collect(NodeId input, std::string& reason) {
    members_.clear();
    columns_.clear();
    const Pattern& pattern = rule_.alternatives[0].pattern;
    const uint32_t shared = pattern.lines[0].operands[0].slot;
    for (const NodeId user : graph_.Users(input)) {
      if (!HasForm(graph_, pattern, 0, user, shared, input)) continue;
      const std::vector<OperandId> operands = graph_.TopOperands(user);
      Member member;
      member.node = user;
      member.weight = graph_.operand(operands[1]).value();
      const auto dims =
          SplitShape(SplitResult(graph_[member.weight].result).shape);
      const auto rows = dims && dims->size() == 2 ? ParseInt((*dims)[0])
                                                  : std::optional<int64_t>();
      if (!rows || *rows < 0 || *rows > kMostRows) {
        reason = "the shape of a weight is not known";
        return false;
      }
      const std::string columns((*dims)[1]);
      if (!columns_.empty() && columns != columns_) {
        reason = "the weights have different widths";
        return false;
      }
      columns_ = columns;
      member.rows = *rows;
      members_.push_back(member);
    }
    if (members_.size() >= 2) return true;
    reason = "an earlier replacement took the linears";
    return false;
  }

  // False when a line does not parse; uses are as they were then.
  bool AddPieces(NodeId place, NodeId whole, const std::string& head,
                 const std::string& dtype) {
    NodeId split;
    if (split_) {
      std::string shapes;
      std::string dtypes;
      for (const Member& member : members_) {
        shapes += fmt::format("{}{}{}", shapes.empty() ? "" : ", ", head,
                              member.rows);
        dtypes += (dtypes.empty() ? "" : ", ") + dtype;
      }
      split = Add(place, "fn.split_output", UseOf(graph_, whole),
                  fmt::format("({}) : ({})", shapes, dtypes));
    }
    if (split_ && !split.valid()) return false;
    int64_t at = 0;
    std::vector<NodeId> pieces;
    for (size_t i = 0; i < members_.size(); ++i) {
      const Member& member = members_[i];
      const std::string result(graph_[member.node].result);
      const NodeId piece =
          split_ ? Add(place, "builtin.getitem",
                       fmt::format("{}, {}", UseOf(graph_, split), i), result)
                 : Add(place, "aten.narrow.default",
                       fmt::format("{}, -1, {}, {}", UseOf(graph_, whole), at,
                                   member.rows),
                       result);
      if (!piece.valid()) return false;
      pieces.push_back(piece);
      at += member.rows;
    }
    for (size_t i = 0; i < members_.size(); ++i)
      graph_.ReplaceUses(members_[i].node, pieces[i]);
    return true;
  }

  // Invalid when the line does not parse.
  NodeId Add(NodeId place, std::string_view target, const std::string& operands,
             const std::string& result) {
    const auto added = graph_.Insert(
        place,
        fmt::format("%{} = {}({}) : {}", graph_.FreshName(BaseName(target)),
                    PrintedTarget(target), operands, result));
    if (!added) return {};
    added_.push_back(*added);
    return *added;
  }

  Graph& graph_;
  const Rule& rule_;
  bool split_ = false;
  std::vector<Member> members_;
  std::vector<NodeId> added_;  // by the replacement at hand
  std::string columns_;
  Replacement place_;
  size_t made_ = 0;
};

}  // namespace

Applied MergeLinears(Graph& graph, const Rule& rule,
                     const ApplyOptions& options) {
  Applied out;
  const OpIndex index(graph);
  FindOptions find;
  find.option = options.option;
  find.layers = options.layers;
  const RuleMatches found = FindRule(index, rule, find);
  Merger merger(graph, rule);
  for (const RuleMatch& match : found.matches) {
    std::string reason;
    if (merger.Merge(match.shared, reason)) {
      ++out.matches;
      out.places.push_back(merger.place());
    } else {
      ++out.left[reason];
    }
  }
  return out;
}

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

namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

size_t CountOps(const Dump& dump) {
  size_t ops = 0;
  for (const Graph& graph : dump.graphs) {
    for (const NodeId id : graph.nodes())
      ops += graph[id].kind == NodeKind::kOp;
  }
  return ops;
}

std::string_view CountedBy(Counting counting) {
  switch (counting) {
    case Counting::kAnchor:
      return "places where the pattern stands";
    case Counting::kGroup:
      return "inputs that two or more linears share";
    case Counting::kFixedPoint:
      return "removals until none is left";
  }
  return {};
}

// --- passes that are code ---

constexpr std::string_view kEndOfDim = "9223372036854775807";

// aten.slice over a whole dimension: its result is its input.
Applied CleanupNoopSlice(Graph& graph, const ApplyOptions&) {
  Applied out;
  std::vector<NodeId> found;
  for (const NodeId id : graph.nodes()) {
    if (graph[id].kind == NodeKind::kOp &&
        MatchesTarget(graph.op(id), "aten.slice"))
      found.push_back(id);
  }
  for (const NodeId id : found) {
    const std::vector<OperandId> operands = graph.TopOperands(id);
    if (operands.size() != 4 || !graph.operand(operands[0]).IsValue() ||
        graph.operand(operands[2]).text() != "0" ||
        graph.operand(operands[3]).text() != kEndOfDim)
      continue;
    const PlaceNotes notes(graph);
    graph.ReplaceUses(id, graph.operand(operands[0]).value());
    EraseUnused(graph, {id});
    ++out.matches;
    out.places.push_back(notes.Done());
  }
  return out;
}

// Adding a literal zero: its result is its other operand, when the element
// type stays.
Applied CleanupNoopAdd(Graph& graph, const ApplyOptions&) {
  Applied out;
  std::vector<NodeId> found;
  for (const NodeId id : graph.nodes()) {
    if (graph[id].kind == NodeKind::kOp &&
        MatchesTarget(graph.op(id), "aten.add"))
      found.push_back(id);
  }
  for (const NodeId id : found) {
    const std::vector<OperandId> operands = graph.TopOperands(id);
    if (operands.size() != 2) continue;
    const bool second = graph.operand(operands[1]).text() == "0";
    const Operand& kept = graph.operand(operands[second ? 0 : 1]);
    const Operand& zero = graph.operand(operands[second ? 1 : 0]);
    if (!kept.IsValue() || zero.IsValue() || zero.text() != "0" ||
        graph[kept.value()].result != graph[id].result)
      continue;
    const PlaceNotes notes(graph);
    graph.ReplaceUses(id, kept.value());
    EraseUnused(graph, {id});
    ++out.matches;
    out.places.push_back(notes.Done());
  }
  return out;
}

struct NativePass {
  std::string_view name;
  std::string_view stage;
  std::string_view counts;
  Applied (*run)(Graph&, const ApplyOptions&);
};
constexpr NativePass kNative[] = {
    {"cleanup_noop_slice", "post_export", "slices over a whole dimension",
     &CleanupNoopSlice},
    {"cleanup_noop_add", "post_export", "additions of zero", &CleanupNoopAdd},
};

// --- running ---

// Shapes that a pass would need and a graph lacks.
bool HasShapes(const Graph& graph) {
  size_t known = 0;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph[id];
    if (node.kind != NodeKind::kOp) continue;
    known += DTypeBytes(SplitResult(node.result).dtype).has_value() ||
             SplitResult(node.result).tuple;
  }
  return known > 0;
}

class Runner {
 public:
  Runner(Dump& dump, const PassRegistry& registry, const RunOptions& options)
      : dump_(dump), registry_(registry), options_(options) {}

  Result<PassReport> Run(const TransformConfig& config) {
    PassReport report;
    report.entry.transform = config.name;
    report.entry.stage = config.stage;
    report.nodes_before = CountOps(dump_);
    report.nodes_after = report.nodes_before;
    const Pass* const pass = registry_.Find(config.name);
    if (!config.enabled) {
      report.entry.status = TransformStatus::kDisabled;
    } else if (pass == nullptr) {
      report.entry.status = TransformStatus::kSkipped;
      report.note = "unknown transform: nothing says what it does to a dump";
    } else {
      LAMINA_TRY(Apply(*pass, config, report));
    }
    return report;
  }

 private:
  Status Apply(const Pass& pass, const TransformConfig& config,
               PassReport& report) {
    const int64_t start = Now();
    ApplyOptions options;
    options.assume = options_.assume;
    options.option = [&config](std::string_view name) {
      const auto found = config.options.find(std::string(name));
      return found == config.options.end() ? std::string() : found->second;
    };
    bool ran = false;
    size_t matches = 0;
    const int64_t before = Now();
    for (Graph& graph : dump_.graphs) {
      if (config.requires_shape_prop && !HasShapes(graph)) continue;
      ran = true;
      Applied applied = pass.run(graph, options);
      matches += applied.matches;
      for (Replacement& place : applied.places) {
        place.graph = static_cast<size_t>(&graph - dump_.graphs.data());
        report.places.push_back(std::move(place));
      }
      for (const auto& [reason, count] : applied.left)
        report.left[reason] += count;
    }
    const int64_t applied = Now();
    for (const Graph& graph : dump_.graphs) {
      for (const Violation& violation : Verify(graph))
        report.violations.push_back(graph.name() + ": " + violation.what);
    }
    report.time = {before - start, applied - before, Now() - applied};
    report.changed = matches > 0;
    report.nodes_after = CountOps(dump_);
    report.entry.matches = static_cast<int64_t>(matches);
    report.entry.status =
        ran ? TransformStatus::kApplied : TransformStatus::kSkipped;
    if (!ran) report.note = "no graph has the shapes that it requires";
    if (report.violations.empty()) return {};
    report.entry.status = TransformStatus::kFailed;
    if (config.skip_on_error) return {};
    return Fail(InputError(
        dump_.name, "transform " + config.name +
                        " broke the graph: " + report.violations.front()));
  }

  Dump& dump_;
  const PassRegistry& registry_;
  const RunOptions& options_;
};

}  // namespace

PassRegistry::PassRegistry(const RuleSet& rules) {
  for (const NativePass& native : kNative) {
    passes_.push_back({std::string(native.name),
                       std::string(native.stage),
                       std::string(native.counts),
                       {},
                       native.run});
  }
  for (const Rule& rule : rules.rules) {
    if (!CanRewrite(rule)) continue;
    passes_.push_back({rule.name,
                       rule.stage,
                       std::string(CountedBy(rule.counting)),
                       {&rule},
                       [&rule](Graph& graph, const ApplyOptions& options) {
                         return ApplyRule(graph, rule, options);
                       }});
  }
}

const Pass* PassRegistry::Find(std::string_view name) const {
  for (const Pass& pass : passes_) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

Result<std::vector<PassReport>> RunPasses(Dump& dump,
                                          const PipelineConfig& config,
                                          const PassRegistry& registry,
                                          const RunOptions& options) {
  std::vector<PassReport> out;
  Runner runner(dump, registry, options);
  for (const TransformConfig& transform : config.transforms) {
    LAMINA_ASSIGN(PassReport report, runner.Run(transform));
    out.push_back(std::move(report));
    dump.header.transform = transform.name;
    dump.header.stage = transform.stage;
    if (options.after) LAMINA_TRY(options.after(out.back(), dump));
  }
  return out;
}

}  // namespace lamina::graph
