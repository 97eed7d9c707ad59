// SPDX-License-Identifier: Apache-2.0
//
// What replayed kernels were captured from and how sure that is, one row per
// kernel of a kind of replay: replays with the same kernels share theirs.
#pragma once

#include <cstdint>
#include <span>
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

// Replayed work below the ops that it was captured from: what `lamina annotate`
// says about a kernel becomes part of the trace, so that every analysis sees
// replays as it sees eager work.

// Puts the captured calls of every replay, with the ops and modules around
// them, below its launch in `replay`; with all Python frames if wanted. Facts
// and likely matches are joined; all other work stays with the launch.
// `captures` are the traces that Segment::file counts.
void MergeCaptures(trace::Trace& replay, const Annotation& annotation,
                   std::span<const analysis::Context* const> captures,
                   bool python_frames);

}  // namespace lamina::cudagraph
