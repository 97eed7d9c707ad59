// SPDX-License-Identifier: Apache-2.0
//
// lamina graph diff: what differs between two dumps in what they compute.
#include "cli/graph/graph_commands.h"
#include "cli/graph/graph_input.h"
#include "graph/diff/diff.h"

namespace lamina::cli {
namespace {

struct Options {
  std::string a;
  std::string b;
  std::string section;
  graph::ParseOptions parse;
};

Result<int> RunDiff(const Options& options, Common& common) {
  graph::ParseOptions parse = options.parse;
  parse.ops = std::make_shared<StringPool>();
  LAMINA_ASSIGN(const GraphInput a,
                OpenGraph(options.a, options.section, common, parse));
  LAMINA_ASSIGN(const GraphInput b,
                OpenGraph(options.b, options.section, common, parse));
  Document document;
  document.command = "graph diff";
  document.inputs = {a.path, b.path};
  document.result =
      graph::DiffTables(*a.graph, *b.graph, graph::Compare(*a.graph, *b.graph));
  LAMINA_TRY(Write(document, common));
  return kFine;
}

Run Add(questions::Description& args, Common& common) {
  auto options = std::make_shared<Options>();
  args.Add("a", options->a, "Dump file, or a folder: its last dump").Required();
  args.Add("b", options->b, "The other one").Required();
  args.Add("--section", options->section,
           "GraphModule (default: the largest of each)");
  AddDialectOption(args, options->parse.dialect);
  common.AddTo(args);
  return [options, &common] { return RunDiff(*options, common); };
}

}  // namespace

CommandInfo GraphDiffCommand() {
  return {"diff", "What two dumps compute differently",
          "lamina graph diff before.txt after.txt", &Add};
}

}  // namespace lamina::cli
