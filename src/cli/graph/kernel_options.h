// SPDX-License-Identifier: Apache-2.0
//
// Which graph of a trace: options that commands with kernels share.
#pragma once

#include "cli/command.h"
#include "graph/kernels/graph_kernels.h"

namespace lamina::cli {

inline void AddKernelOptions(CLI::App& app, graph_kernels::Options& options) {
  app.add_option("--graph", options.graph_id,
                 "Id of the device graph (default: the one that fits)");
  app.add_option("--phase", options.phase, "Only graphs of this phase")
      ->check(CLI::IsMember({"prefill", "decode"}));
}

}  // namespace lamina::cli
