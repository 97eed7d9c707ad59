// SPDX-License-Identifier: Apache-2.0
//
// lamina graph kernels: times of the kernels of a replayed device graph.

#include "base/byte_sink.h"
#include "questions/bodies.h"
#include "questions/graph/graph_input.h"
#include "questions/graph/kernel_options.h"

namespace lamina::questions {
namespace {

struct GraphKernelsOptions {
  std::string trace;
  std::string dump;
  std::string section;
  graph::ParseOptions parse;
  std::string layer;
  graph_kernels::Options kernels;
  bool all = false;
};

Result<Answer> RunKernels(const GraphKernelsOptions& options, Asker& asker) {
  const rules::DataSet data(asker.rules_dir);
  LAMINA_ASSIGN(const auto launches, graph::LaunchTable::Load(data));
  LAMINA_ASSIGN(const auto session, asker.OpenTrace(options.trace));
  Document document;
  document.command = "graph kernels";
  document.inputs = {options.trace};
  GraphInput input;
  std::optional<graph_kernels::KernelMap> map;
  if (options.dump.empty()) {
    LAMINA_ASSIGN(map, graph_kernels::ListKernels(session->trace(), *launches,
                                                  options.kernels));
  } else {
    LAMINA_ASSIGN(const auto rules, graph::GroupRules::Load(data));
    LAMINA_ASSIGN(
        input, OpenGraph(options.dump, options.section, asker, options.parse));
    document.inputs.push_back(input.path);
    const graph::Layers layers = graph::FindLayers(*input.graph, *rules);
    const auto groups = graph::GroupNodes(*input.graph, layers, *rules);
    const graph::Kinds kinds = graph::FindKinds(*input.graph, layers, groups);
    LAMINA_ASSIGN(map, graph_kernels::MapKernels(session->trace(),
                                                 {*input.graph, layers, kinds},
                                                 *launches, options.kernels));
    const double share = graph_kernels::SureShare(*map);
    if (share < graph_kernels::kSureEnough) {
      map->notes.push_back(MakeNote(
          Severity::kWarning, "trace_fits_badly",
          graph_kernels::MisfitText(share) +
              ": another model, phase, parallelism or stage; kernels may be "
              "on wrong nodes."));
    }
  }
  // A JSON file by layer is what other programs read.
  if (asker.output != "-") {
    LAMINA_TRY(WriteFile(asker.output, graph_kernels::KernelJson(
                                           *map, input.graph, options.trace,
                                           true, options.layer)));
    Answer answer;
    answer.nothing = true;
    return answer;
  }
  document.result = graph_kernels::KernelTables(*map, input.graph);
  const bool table = asker.for_screen();
  std::erase_if(document.result.tables, [&](const Table& one) {
    return table && !options.all && options.layer.empty() &&
           one.name() == "graph_kernels";
  });
  if (!options.layer.empty()) {
    for (Table& one : document.result.tables) {
      if (!one.schema().Find("layer")) continue;
      Table kept(one.schema());
      for (size_t row = 0; row < one.rows(); ++row) {
        if (one.At(row, "layer").text() != options.layer) continue;
        std::vector<Value> values;
        for (size_t c = 0; c < one.columns(); ++c)
          values.push_back(one.At(row, c));
        kept.AddRow(values);
      }
      one = std::move(kept);
    }
  }
  return Answer(std::move(document));
}

}  // namespace

Body DescribeGraphKernels(Description& args, Asker& asker) {
  auto options = std::make_shared<GraphKernelsOptions>();
  args.Add("trace", options->trace, "Trace with replays of a device graph")
      .Required();
  args.Add("--dump", options->dump,
           "Graph dump, or a folder of them: kernels are put on its "
           "nodes");
  args.Add("--section", options->section,
           "GraphModule of the dump (default: the largest)");
  AddDialectOption(args, options->parse.dialect);
  args.Add("-n,--layer", options->layer, "Only this layer");
  AddKernelOptions(args, options->kernels);
  args.Flag("--all", options->all, "Also a row per kernel");
  return [options, &asker] { return RunKernels(*options, asker); };
}

}  // namespace lamina::questions
