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

}  // namespace

CommandInfo GraphCommand() {
  return {"graph", "Graph dumps of a compiler: print, compare, cut out layers",
          "lamina graph print dumps/ --stats", nullptr, kCommands};
}

}  // namespace lamina::cli
