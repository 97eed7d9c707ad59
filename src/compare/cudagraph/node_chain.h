// SPDX-License-Identifier: Apache-2.0
//
// Replayed kernels joined to their capture by ids of graph nodes, and tags by
// those ids from the files that PyTorch writes beside a trace.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "compare/cudagraph/annotate.h"
#include "trace/graph_nodes.h"

namespace lamina::cudagraph {

// Replayed kernels joined to their capture by the ids of graph nodes, where the
// recording holds both (Nsight Systems with --cuda-graph-trace=node): no
// alignment, no guess. What a node was recorded under is told by the ranges and
// calls that hold the moment on its thread.

class NodeChain {
 public:
  explicit NodeChain(const trace::Trace& trace);

  // Gives the kernels of `replay` the nodes that they go back to, as a segment
  // of the trace itself at the end of `segments`. False, with nothing changed,
  // when fewer than half of them can be followed.
  bool Apply(Replay& replay, std::vector<Segment>& segments,
             std::vector<Match>& matches);

 private:
  void TagRoots(const std::vector<const trace::GraphNode*>& roots);
  Tags MakeTags(const std::vector<trace::SliceId>& open, int64_t& batch) const;
  void AddModule(trace::SliceId frame, Tags& tags) const;

  const trace::Trace& trace_;
  trace::GraphNodes nodes_;
  bool has_ops_ = false;  // else the ranges are the ops, but for modules
  absl::flat_hash_set<trace::SliceId> module_ranges_;
  struct Tagged {
    Tags tags;
    int64_t batch = -1;
  };
  absl::flat_hash_map<const trace::GraphNode*, Tagged> tags_;
  std::map<std::vector<const trace::GraphNode*>, uint32_t> known_;
  uint32_t captures_ = 0;
};

// Tags by the id of a graph node, from the files that PyTorch writes while it
// records a graph: annotations ({"id": [{"key": "value"}, ...]}) or Python
// stacks ({"id": "file:line:function\n..."}, innermost first).

class NodeTags {
 public:
  // Errors: unreadable, no JSON, no such form. A pickle is refused: it is a
  // program. A file without an entry is fine; old software writes it.
  static Result<NodeTags> Read(const std::string& path);

  // Null if there is none.
  const Tags* Find(int64_t id) const;

  // Gives every kernel whose node is known its tags as a fact, beside what the
  // alignment knows for sure. The id is that of the tools interface, graph and
  // node in one number, or the node within its graph: for each replay the form
  // with more hits.
  void Apply(const trace::Trace& trace, Annotation& annotation) const;

 private:
  absl::flat_hash_map<int64_t, Tags> tags_;
};

}  // namespace lamina::cudagraph
