// SPDX-License-Identifier: Apache-2.0
//
// Metadata events as names and places of tracks.
#pragma once

#include <span>

#include "trace/segment.h"
#include "trace/trace.h"

namespace lamina::trace {

// `facts` in the order of the file; their ids are those of the trace.
void ApplyFacts(std::span<const TrackFact> facts, Trace& trace);

}  // namespace lamina::trace
