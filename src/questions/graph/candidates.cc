// SPDX-License-Identifier: Apache-2.0
//
// lamina graph candidates: what could be fused, and what that is worth.
#include "graph/fusion/candidates.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/decimal.h"
#include "base/escape.h"
#include "graph/atlas/atlas.h"
#include "questions/bodies.h"
#include "questions/graph/graph_input.h"
#include "questions/graph/kernel_options.h"
#include "questions/graph/rule_input.h"

namespace lamina::questions {
namespace {

constexpr size_t kShownCandidates = 20;

struct GraphCandidatesOptions {
  std::string input;
  std::string section;
  graph::ParseOptions parse;
  std::string tree;
  std::string log;
  std::string trace;
  std::string device;
  graph_kernels::Options kernels;
  std::vector<std::string> bind;
  std::vector<std::string> without;
  size_t min_layers = 0;
  bool template_text = false;
  bool force = false;
};

// The log of --log, or the one beside the dump.
Result<std::optional<graph::TransformLog>> FindLog(
    const GraphCandidatesOptions& options, const std::string& dump) {
  namespace fs = std::filesystem;
  std::string path = options.log;
  if (path.empty()) {
    const fs::path beside = fs::path(dump).parent_path() / "transform.log";
    std::error_code error;
    if (!fs::is_regular_file(beside, error)) return std::nullopt;
    path = beside.string();
  }
  LAMINA_ASSIGN(graph::TransformLog log, graph::ReadTransformLog(path));
  return log;
}

Result<graph_kernels::KernelMap> MapKernels(
    const GraphCandidatesOptions& options, const RuleInput& rules,
    const GraphInput& input, const graph::LaunchTable& launches,
    const trace::Trace& trace) {
  const graph::Graph& graph = *input.graph;
  const graph::Layers layers = graph::FindLayers(graph, *rules.groups);
  const auto groups = graph::GroupNodes(graph, layers, *rules.groups);
  const graph::Kinds kinds = graph::FindKinds(graph, layers, groups);
  return graph_kernels::MapKernels(trace, {graph, layers, kinds}, launches,
                                   options.kernels);
}

// What the nodes took in a full replay of median length.
fusion::Measured MeasureNodes(const graph::Graph& graph,
                              const graph_kernels::KernelMap& map) {
  fusion::Measured out;
  out.node_ns.assign(graph.size(), 0);
  for (const graph_kernels::NodeTime& node : map.nodes)
    out.node_ns[node.node.value] = std::llround(node.time.median_ns);
  for (const graph_kernels::MappedKernel& kernel : map.kernels) {
    const int64_t ns = std::llround(kernel.time.median_ns);
    if (out.shortest_kernel_ns == 0 || ns < out.shortest_kernel_ns)
      out.shortest_kernel_ns = ns;
  }
  std::vector<int64_t> steps;
  for (const graph_kernels::Replay& replay : map.runs.replays) {
    if (replay.full) steps.push_back(replay.end_ns - replay.start_ns);
  }
  std::ranges::sort(steps);
  if (!steps.empty()) out.step_ns = steps[(steps.size() - 1) / 2];
  return out;
}

Result<Answer> RunCandidates(const GraphCandidatesOptions& options,
                             Asker& asker) {
  LAMINA_ASSIGN(RuleInput rules, OpenRules(asker));
  for (const std::string& name : options.without) {
    if (rules.set.Find(name) == nullptr) return Fail(UnknownRule(rules, name));
    std::erase_if(rules.set.rules,
                  [&](const graph::Rule& rule) { return rule.name == name; });
  }
  LAMINA_ASSIGN(const auto ops, fusion::OpTable::Load(rules.data));
  fusion::CandidateOptions find;
  LAMINA_ASSIGN(find.bindings, ParseBindings(options.bind, 1));
  std::optional<fusion::SourceIndex> tree;
  if (!options.tree.empty()) {
    const ScopedStage stage(&asker.times, "scan");
    LAMINA_ASSIGN(tree, fusion::ScanTree(options.tree));
  }
  LAMINA_ASSIGN(
      const GraphInput input,
      OpenGraph(options.input, options.section, asker, options.parse));
  LAMINA_ASSIGN(const auto log, FindLog(options, input.path));
  const fusion::KernelLookup lookup(*ops, tree ? &*tree : nullptr);
  find.min_layers = options.min_layers;
  find.rules = &rules.set;
  find.groups = rules.groups.get();
  find.ops = ops.get();
  find.lookup = &lookup;
  find.log = log ? &*log : nullptr;
  std::vector<Note> notes;
  LAMINA_ASSIGN(const auto launches, graph::LaunchTable::Load(rules.data));
  fusion::Measured measured;
  std::optional<graph_kernels::KernelMap> kernels;
  std::shared_ptr<engine::Session> session;
  if (!options.trace.empty()) {
    LAMINA_ASSIGN(session, asker.OpenTrace(options.trace));
    const ScopedStage stage(&asker.times, "kernels");
    LAMINA_ASSIGN(kernels, MapKernels(options, rules, input, *launches,
                                      session->trace()));
    notes = kernels->notes;
    const double share = graph_kernels::SureShare(*kernels);
    if (share < graph_kernels::kSureEnough) {
      const std::string what = graph_kernels::MisfitText(share);
      if (!options.force) {
        return Fail(UsageError(
            what,
            "another model, phase or parallelism, a dump of another stage, or "
            "a part of the kernels? ⟨force⟩ goes on, with claims that are "
            "unsure"));
      }
      notes.push_back(MakeNote(Severity::kWarning, "trace_fits_badly",
                               "Claims are unsure: " + what + "."));
    }
    measured = MeasureNodes(*input.graph, *kernels);
    measured.unsure = share < graph_kernels::kSureEnough;
    find.measured = &measured;
  }
  LAMINA_ASSIGN(find.memory,
                ChooseMemory(rules, options.device, session.get()));
  fusion::Candidates found;
  {
    const ScopedStage stage(&asker.times, "search");
    found = fusion::FindCandidates(*input.graph, find);
  }
  const size_t top = asker.top > 0 ? asker.top : kShownCandidates;
  if (options.template_text) {
    Answer answer;
    answer.text = fusion::CandidateMarkdown(found, input.FileName(), top);
    return answer;
  }
  Document document;
  document.command = "graph candidates";
  document.inputs = {input.path};
  document.result = fusion::CandidateTables(
      found, input.FileName(), asker.for_screen() ? top : found.list.size());
  if (!options.trace.empty()) document.inputs.push_back(options.trace);
  for (Note& note : notes) {
    note.evidence.clear();  // tables of `graph kernels`
    document.result.notes.push_back(std::move(note));
  }
  if (asker.for_page() || !asker.only.empty()) {
    graph::Atlas atlas(*rules.groups, *launches);
    atlas.Add({input.FileName(), input.dump.header.stage,
               input.dump.header.transform},
              *input.graph, [&](graph::LayerGraph& layer) {
                if (kernels)
                  graph_kernels::AddKernels(*kernels, *input.graph, layer);
              });
    document.result.Append(std::move(atlas).Tables());
  }
  // The evidence of every kernel is for files.
  if (asker.for_screen() && asker.only.empty()) {
    std::erase_if(document.result.tables, [](const Table& table) {
      return table.name() != "candidates";
    });
  }
  if (tree && !asker.for_screen())
    document.result.tables.push_back(fusion::SourceTable(*tree));
  return Answer(std::move(document));
}

}  // namespace

Body DescribeGraphCandidates(Description& args, Asker& asker) {
  auto options = std::make_shared<GraphCandidatesOptions>();
  args.Add("dump", options->input, "Dump file, or a folder (its last dump)")
      .Required();
  args.Add("--section", options->section,
           "GraphModule to look at (default: the largest)");
  AddDialectOption(args, options->parse.dialect);
  args.Add("--tree", options->tree,
           "Source checkout of TensorRT-LLM to look up kernels in");
  args.Add("--log", options->log,
           "Log of the run (default: transform.log beside the dump)");
  args.Add("--trace", options->trace,
           "Trace with replays of this graph: savings are bounds by what "
           "its nodes took, not estimates")
      .ValueName("TRACE");
  AddKernelOptions(args, options->kernels);
  args.Add("--bind", options->bind, "Sizes of symbols, like s72=1,s70=128")
      .SplitAtCommas();
  AddDeviceOption(args, options->device);
  args.Add("--min-layers", options->min_layers,
           "Layers that must hold a form (default: half of them)");
  args.Add("--without-rule", options->without,
           "Leave out these rules: what they match is searched for");
  args.Flag("--force", options->force,
            "Go on with a trace of which less than 80 % of the time is surely "
            "on nodes of the dump");
  args.Flag("--template", options->template_text,
            "Print a proposal per candidate as Markdown");
  return [options, &asker] { return RunCandidates(*options, asker); };
}

}  // namespace lamina::questions
