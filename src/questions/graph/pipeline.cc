// SPDX-License-Identifier: Apache-2.0
//
// lamina graph pipeline: which transform changed what.
#include "graph/pipeline/pipeline.h"

#include "questions/bodies.h"
#include "questions/graph/graph_input.h"

namespace lamina::questions {
namespace {

struct GraphPipelineOptions {
  std::string folder;
  std::string section;
  graph::ParseOptions parse;
  bool all = false;
  bool ops = false;
};

Result<Answer> RunPipeline(const GraphPipelineOptions& options, Asker& asker) {
  LAMINA_ASSIGN(const std::vector<graph::DumpFile> files,
                graph::ListDumps(options.folder));
  graph::Pipeline pipeline;
  {
    const ScopedStage stage(&asker.times, "read");
    LAMINA_ASSIGN(pipeline,
                  graph::ReadPipeline(files, options.section, options.parse));
  }
  Document document;
  document.command = "graph pipeline";
  document.inputs = {options.folder};
  document.result = graph::PipelineTables(pipeline, options.all, options.ops);
  return Answer(std::move(document));
}

}  // namespace

Body DescribeGraphPipeline(Description& args, Asker& asker) {
  auto options = std::make_shared<GraphPipelineOptions>();
  args.Add("folder", options->folder, "Folder of dumps").Required();
  args.Add("--section", options->section,
           "GraphModule to follow (default: the largest)");
  AddDialectOption(args, options->parse.dialect);
  args.Flag("--all", options->all, "Also transforms that changed nothing");
  args.Flag("--ops", options->ops,
            "Every op whose count changed, not only those that came or "
            "went");
  return [options, &asker] { return RunPipeline(*options, asker); };
}

}  // namespace lamina::questions
