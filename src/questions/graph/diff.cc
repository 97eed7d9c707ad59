// SPDX-License-Identifier: Apache-2.0
//
// lamina graph diff: what differs between two dumps in what they compute.
#include "graph/diff/diff.h"

#include "questions/bodies.h"
#include "questions/graph/graph_input.h"

namespace lamina::questions {
namespace {

struct GraphDiffOptions {
  std::string a;
  std::string b;
  std::string section;
  graph::ParseOptions parse;
};

Result<Answer> RunDiff(const GraphDiffOptions& options, Asker& asker) {
  graph::ParseOptions parse = options.parse;
  parse.ops = std::make_shared<StringPool>();
  LAMINA_ASSIGN(const GraphInput a,
                OpenGraph(options.a, options.section, asker, parse));
  LAMINA_ASSIGN(const GraphInput b,
                OpenGraph(options.b, options.section, asker, parse));
  Document document;
  document.command = "graph diff";
  document.inputs = {a.path, b.path};
  document.result =
      graph::DiffTables(*a.graph, *b.graph, graph::Compare(*a.graph, *b.graph));
  return Answer(std::move(document));
}

}  // namespace

Body DescribeGraphDiff(Description& args, Asker& asker) {
  auto options = std::make_shared<GraphDiffOptions>();
  args.Add("a", options->a, "Dump file, or a folder: its last dump").Required();
  args.Add("b", options->b, "The other one").Required();
  args.Add("--section", options->section,
           "GraphModule (default: the largest of each)");
  AddDialectOption(args, options->parse.dialect);
  return [options, &asker] { return RunDiff(*options, asker); };
}

}  // namespace lamina::questions
