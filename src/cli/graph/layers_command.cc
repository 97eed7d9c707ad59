// SPDX-License-Identifier: Apache-2.0
//
// lamina graph layers: all layers of a graph at a glance.
#include "cli/graph/graph_commands.h"
#include "cli/graph/graph_input.h"
#include "graph/layers/tables.h"

namespace lamina::cli {
namespace {

struct Options {
  std::string path;
  std::string section;
  graph::ParseOptions parse;
  bool all = false;
};

Result<int> RunLayers(const Options& options, Common& common) {
  LAMINA_ASSIGN(const auto rules,
                graph::GroupRules::Load(rules::DataSet(common.rules_dir)));
  LAMINA_ASSIGN(const GraphInput input, OpenGraph(options.path, options.section,
                                                  common, options.parse));
  Document document;
  document.command = "graph layers";
  document.inputs = {input.path};
  {
    const ScopedStage stage(&common.times, "layers");
    const graph::Graph& graph = *input.graph;
    const graph::Layers layers = graph::FindLayers(graph, *rules);
    const std::vector<graph::Group> groups =
        graph::GroupNodes(graph, layers, *rules);
    document.result = graph::LayerTables(
        graph, layers, groups, graph::FindKinds(graph, layers, groups));
  }
  // On a terminal a row per layer and per op is too much unless asked for.
  if (common.format == "table" && !options.all) {
    std::erase_if(document.result.tables, [](const Table& table) {
      return table.name() != "kinds" && table.name() != "parts";
    });
  }
  LAMINA_TRY(Write(document, common));
  return kFine;
}

Run Add(questions::Description& args, Common& common) {
  auto options = std::make_shared<Options>();
  args.Add("dump", options->path,
           "Dump file, or a folder of dumps: the last one")
      .Required();
  args.Add("--section", options->section, "GraphModule (default: the largest)");
  AddDialectOption(args, options->parse.dialect);
  args.Flag("--all", options->all, "Also a row per layer, boundary and op");
  common.AddTo(args);
  return [options, &common] { return RunLayers(*options, common); };
}

}  // namespace

CommandInfo GraphLayersCommand() {
  return {"layers", "All layers of a graph: kinds, groups, odd ones out",
          "lamina graph layers dumps/", &Add};
}

}  // namespace lamina::cli
