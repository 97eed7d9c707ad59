// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/pass.h"

#include <chrono>
#include <fmt/format.h>

#include "base/escape.h"
#include "graph/print.h"
#include "graph/target.h"
#include "graph/types.h"
#include "graph/verify.h"

namespace lamina::graph {
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

std::string_view Counts(Counting counting) {
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
                       std::string(Counts(rule.counting)),
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
