// SPDX-License-Identifier: Apache-2.0
//
// Tags by the id of a graph node, from the files that PyTorch writes while it
// records a graph: annotations ({"id": [{"key": "value"}, ...]}) or Python
// stacks ({"id": "file:line:function\n..."}, innermost first).
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "compare/cudagraph/annotate.h"

namespace lamina::cudagraph {

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
