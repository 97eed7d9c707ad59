// SPDX-License-Identifier: Apache-2.0
//
// From a replayed kernel to the moment it was recorded: every instantiation
// and every clone of a graph gives its nodes new ids and names the node it
// copies; the node that copies none was made while the graph was recorded.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <utility>

#include "trace/trace.h"

namespace lamina::trace {

class GraphNodes {
 public:
  // Longer chains of copies are a circle or damage: they have no root.
  static constexpr int kMaxHops = 64;

  explicit GraphNodes(const Trace& trace);

  // The node that a device slice goes back to; null when it is no part of a
  // graph or its nodes are not in the trace.
  const GraphNode* Root(SliceId slice) const;

 private:
  using Key = std::pair<StringId, int64_t>;  // process, id

  const Trace& trace_;
  absl::flat_hash_map<Key, uint32_t> rows_;
};

}  // namespace lamina::trace
