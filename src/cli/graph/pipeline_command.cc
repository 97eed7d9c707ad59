// SPDX-License-Identifier: Apache-2.0
//
// lamina graph pipeline: which transform changed what.
#include "cli/graph/graph_commands.h"
#include "cli/graph/graph_input.h"
#include "graph/pipeline/pipeline.h"

namespace lamina::cli {
namespace {

struct Options {
  std::string folder;
  std::string section;
  graph::ParseOptions parse;
  bool all = false;
  bool ops = false;
};

Result<int> RunPipeline(const Options& options, Common& common) {
  LAMINA_ASSIGN(const std::vector<graph::DumpFile> files,
                graph::ListDumps(options.folder));
  graph::Pipeline pipeline;
  {
    const ScopedStage stage(&common.times, "read");
    LAMINA_ASSIGN(pipeline,
                  graph::ReadPipeline(files, options.section, options.parse));
  }
  Document document;
  document.command = "graph pipeline";
  document.inputs = {options.folder};
  document.result = graph::PipelineTables(pipeline, options.all, options.ops);
  LAMINA_TRY(Write(document, common));
  return kFine;
}

Run Add(questions::Description& args, Common& common) {
  auto options = std::make_shared<Options>();
  args.Add("folder", options->folder, "Folder of dumps").Required();
  args.Add("--section", options->section,
           "GraphModule to follow (default: the largest)");
  AddDialectOption(args, options->parse.dialect);
  args.Flag("--all", options->all, "Also transforms that changed nothing");
  args.Flag("--ops", options->ops,
            "Every op whose count changed, not only those that came or "
            "went");
  common.AddTo(args);
  return [options, &common] { return RunPipeline(*options, common); };
}

}  // namespace

CommandInfo GraphPipelineCommand() {
  return {"pipeline", "What each transform of a run changed",
          "lamina graph pipeline dumps/", &Add};
}

}  // namespace lamina::cli
