// SPDX-License-Identifier: Apache-2.0
//
// Which graph of a trace: options that commands with kernels share.
#pragma once

#include "graph/kernels/graph_kernels.h"
#include "questions/asker.h"

namespace lamina::questions {

inline void AddKernelOptions(Description& args,
                             graph_kernels::Options& options) {
  args.Add("--graph", options.graph_id,
           "Id of the device graph (default: the one that fits)");
  args.Add("--phase", options.phase, "Only graphs of this phase")
      .OneOf({"prefill", "decode"});
}

}  // namespace lamina::questions
