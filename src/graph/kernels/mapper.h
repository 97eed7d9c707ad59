// SPDX-License-Identifier: Apache-2.0
//
// The ops of a dump that can launch, and the alignment of a graph with them.
#pragma once

#include <string_view>
#include <vector>

#include "graph/kernels/align.h"
#include "graph/kernels/graph_kernels.h"
#include "graph/kernels/instructions.h"

namespace lamina::graph_kernels {

class Mapper {
 public:
  Mapper(const trace::Trace& trace, const DumpView& dump,
         const graph::LaunchTable& launches, const Instructions& ran);

  // Aligns a graph; what follows speaks of it. Errors are those of
  // AlignKernels().
  Status Align(const GraphRuns& runs);
  // Mean of the shares of kernels and of necessary ops that found a partner.
  double Fit() const;
  // Gives the kernels of the graph their nodes, layers and confidence.
  void Apply(KernelMap& map) const;

 private:
  void Judge(KernelMap& map) const;
  // Takes all ops, or those that may launch by the table.
  void TakeNodes(bool all);
  // All of them, and which call a library: for what follows.
  void TakeCalls();
  // By the instructions that the trace names; false when no kernel ran one of
  // the dump.
  bool AlignInstructions(const GraphRuns& runs);
  // By the names that XLA gives; false when no kernel has one of the dump.
  bool AlignNames(const std::vector<std::string_view>& kernels);

  const trace::Trace& trace_;
  const DumpView& dump_;
  const graph::LaunchTable& launches_;
  const Instructions& ran_;
  std::vector<graph::NodeId> nodes_;
  std::vector<std::string_view> ops_;
  std::vector<Assignment> assigned_;
  bool named_ = false;                 // by names
  std::vector<bool> calls_;            // with that: of a library
  std::vector<bool> launches_surely_;  // with that: fusions and calls
};

}  // namespace lamina::graph_kernels
