// SPDX-License-Identifier: Apache-2.0
//
// lamina graph: everything about dumps of compiler graphs.
#include "cli/commands.h"
#include "cli/graph/graph_commands.h"

namespace lamina::cli {
namespace {

// In the order of --help.
const CommandInfo kCommands[] = {
    GraphPrintCommand(),  GraphPipelineCommand(),   GraphLayersCommand(),
    GraphLayerCommand(),  GraphKernelsCommand(),    GraphDiffCommand(),
    GraphCensusCommand(), GraphCandidatesCommand(), GraphRewriteCommand(),
    GraphPassCommand(),   GraphLogDiffCommand(),    GraphReviewCommand(),
};

Run Add(Arguments& args, Common& common) {
  auto chosen = std::make_shared<Run>();
  args.RequireCommand();
  for (const CommandInfo& command : kCommands) {
    const auto body = std::make_shared<Run>();
    Arguments sub = args.Command(command.name, command.summary, command.example,
                                 [chosen, body] { *chosen = *body; });
    *body = command.add(sub, common);
  }
  return [chosen] { return (*chosen)(); };
}

}  // namespace

CommandInfo GraphCommand() {
  return {"graph", "Graph dumps of a compiler: print, compare, cut out layers",
          "lamina graph print dumps/ --stats", &Add};
}

}  // namespace lamina::cli
