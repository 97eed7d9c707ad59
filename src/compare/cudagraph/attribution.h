// SPDX-License-Identifier: Apache-2.0
//
// What replayed kernels were captured from and how sure that is, one row per
// kernel of a kind of replay: replays with the same kernels share theirs.
#pragma once

#include <cstdint>
#include <vector>

#include "compare/cudagraph/annotate.h"
#include "lamina/table.h"

namespace lamina::cudagraph {

struct Attribution {
  Table table;  // graph_attribution
  // By row of device arguments: row + 1 of the table; 0: not replayed.
  std::vector<uint32_t> row_of;
};

// `files` are the names of the traces that Segment::file counts.
Attribution AttributionOf(const trace::Trace& trace,
                          const Annotation& annotation,
                          const std::vector<std::string>& files);

}  // namespace lamina::cudagraph
