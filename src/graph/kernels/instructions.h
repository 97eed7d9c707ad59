// SPDX-License-Identifier: Apache-2.0
//
// The instruction of a compiled program that each kernel of a trace ran, where
// the recording says it (hlo_op and hlo_module of XLA).
#pragma once

#include <absl/container/flat_hash_map.h>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "trace/trace.h"

namespace lamina::graph_kernels {

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

}  // namespace lamina::graph_kernels
