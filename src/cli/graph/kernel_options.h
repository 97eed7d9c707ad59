// SPDX-License-Identifier: Apache-2.0
//
// Which graph of a trace: options that commands with kernels share.
#pragma once

#include "cli/command.h"
#include "graph/kernels/graph_kernels.h"

namespace lamina::cli {

inline void AddKernelOptions(questions::Description& args, graph_kernels::Options& options) {
  args.Add("--graph", options.graph_id,
           "Id of the device graph (default: the one that fits)");
  args.Add("--phase", options.phase, "Only graphs of this phase")
      .OneOf({"prefill", "decode"});
}

}  // namespace lamina::cli
