// SPDX-License-Identifier: Apache-2.0
//
// The sub-commands of `lamina graph`, one file each; graph_command.cc lists
// them.
#pragma once

#include "cli/command.h"

namespace lamina::cli {

CommandInfo GraphPrintCommand();
CommandInfo GraphPipelineCommand();
CommandInfo GraphLayersCommand();
CommandInfo GraphLayerCommand();
CommandInfo GraphKernelsCommand();
CommandInfo GraphDiffCommand();
CommandInfo GraphCensusCommand();
CommandInfo GraphCandidatesCommand();
CommandInfo GraphRewriteCommand();
CommandInfo GraphPassCommand();
CommandInfo GraphLogDiffCommand();
CommandInfo GraphReviewCommand();

}  // namespace lamina::cli
