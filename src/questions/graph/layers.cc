// SPDX-License-Identifier: Apache-2.0
//
// lamina graph layers: all layers of a graph at a glance.
#include "graph/layers/kinds.h"
#include "questions/bodies.h"
#include "questions/graph/graph_input.h"

namespace lamina::questions {
namespace {

struct GraphLayersOptions {
  std::string path;
  std::string section;
  graph::ParseOptions parse;
  bool all = false;
};

Result<Answer> RunGraphLayers(const GraphLayersOptions& options, Asker& asker) {
  LAMINA_ASSIGN(const auto rules,
                graph::GroupRules::Load(rules::DataSet(asker.rules_dir)));
  LAMINA_ASSIGN(const GraphInput input,
                OpenGraph(options.path, options.section, asker, options.parse));
  Document document;
  document.command = "graph layers";
  document.inputs = {input.path};
  {
    const ScopedStage stage(&asker.times, "layers");
    const graph::Graph& graph = *input.graph;
    const graph::Layers layers = graph::FindLayers(graph, *rules);
    const std::vector<graph::Group> groups =
        graph::GroupNodes(graph, layers, *rules);
    document.result = graph::LayerTables(
        graph, layers, groups, graph::FindKinds(graph, layers, groups));
  }
  // On a terminal a row per layer and per op is too much unless asked for.
  if (asker.for_screen() && !options.all) {
    std::erase_if(document.result.tables, [](const Table& table) {
      return table.name() != "kinds" && table.name() != "parts";
    });
  }
  return Answer(std::move(document));
}

}  // namespace

Body DescribeGraphLayers(Description& args, Asker& asker) {
  auto options = std::make_shared<GraphLayersOptions>();
  args.Add("dump", options->path,
           "Dump file, or a folder of dumps: the last one")
      .Required();
  args.Add("--section", options->section, "GraphModule (default: the largest)");
  AddDialectOption(args, options->parse.dialect);
  args.Flag("--all", options->all, "Also a row per layer, boundary and op");
  return [options, &asker] { return RunGraphLayers(*options, asker); };
}

}  // namespace lamina::questions
