// SPDX-License-Identifier: Apache-2.0
//
// Replayed work below the ops that it was captured from: what `lamina annotate`
// says about a kernel becomes part of the trace, so that every analysis sees
// replays as it sees eager work.
#pragma once

#include <span>

#include "compare/cudagraph/annotate.h"

namespace lamina::cudagraph {

// Puts the captured calls of every replay, with the ops and modules around
// them, below its launch in `replay`; with all Python frames if wanted. Facts
// and likely matches are joined; all other work stays with the launch.
// `captures` are the traces that Segment::file counts.
void MergeCaptures(trace::Trace& replay, const Annotation& annotation,
                   std::span<const analysis::Context* const> captures,
                   bool python_frames);

}  // namespace lamina::cudagraph
