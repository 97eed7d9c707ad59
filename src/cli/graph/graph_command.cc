// SPDX-License-Identifier: Apache-2.0
//
// lamina graph: everything about dumps of compiler graphs.
#include "cli/commands.h"
#include "cli/graph/graph_commands.h"

namespace lamina::cli {
namespace {

// In the order of --help.
const CommandInfo kCommands[] = {
    GraphPrintCommand(),   GraphPipelineCommand(),   GraphLayersCommand(),
    GraphLayerCommand(),   GraphKernelsCommand(),    GraphDiffCommand(),
    GraphCensusCommand(),  GraphCandidatesCommand(), GraphRewriteCommand(),
    GraphLogDiffCommand(), GraphReviewCommand(),
};

Run Add(CLI::App& app, Common& common) {
  auto chosen = std::make_shared<Run>();
  app.require_subcommand(1);
  for (const CommandInfo& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    sub->footer(std::string("Example:\n  ") + command.example);
    auto body = std::make_shared<Run>(command.add(*sub, common));
    sub->callback([chosen, body] { *chosen = *body; });
  }
  return [chosen] { return (*chosen)(); };
}

}  // namespace

CommandInfo GraphCommand() {
  return {"graph", "Graph dumps of a compiler: print, compare, cut out layers",
          "lamina graph print dumps/ --stats", &Add};
}

}  // namespace lamina::cli
