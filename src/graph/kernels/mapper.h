// SPDX-License-Identifier: Apache-2.0
//
// The ops of a dump that can launch, and the alignment of a graph with them.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/kernels/align.h"
#include "graph/kernels/graph_kernels.h"
#include "trace/trace.h"

namespace lamina::graph_kernels {

// The instruction of a compiled program that each kernel of a trace ran, where
// the recording says it (hlo_op and hlo_module of XLA).

// The program that a graph of an HLO dump belongs to: "jit_step" of the last
// "HloModule jit_step" in front of it. Empty: the text names none.
std::string_view ModuleOf(const graph::Graph& graph);

class Instructions {
 public:
  // Those of one program. Looks at no slice when the trace has none of it.
  Instructions(const trace::Trace& trace, std::string_view module);

  bool empty() const { return !any_; }
  // Null: the recording says nothing, or another program.
  const trace::Instruction* Of(trace::SliceId kernel) const;

 private:
  struct Run {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    trace::SliceId op;
  };

  const trace::Instruction* OfOp(trace::SliceId op) const;

  const trace::Trace& trace_;
  std::string_view module_;
  bool any_ = false;
  absl::flat_hash_map<int64_t, trace::SliceId> by_external_id_;
  absl::flat_hash_map<int64_t, trace::SliceId> launch_;   // by correlation
  absl::flat_hash_map<uint32_t, std::vector<Run>> runs_;  // by track, by start
};

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
