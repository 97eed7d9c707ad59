// SPDX-License-Identifier: Apache-2.0
//
// Begin and end events as slices.
//
// Those of a track pair like brackets. Where the events of a track stand in
// the order of time, that of the file decides at one instant. Elsewhere (all
// begins of a group before all ends) they are sorted, and an instant first
// closes what was open before it, then opens, then closes the rest:
// back-to-back spans stay apart, empty ones stay empty.
#pragma once

#include <vector>

#include "trace/segment.h"
#include "trace/trace.h"

namespace lamina::trace {

// Adds a slice for every pair; counts what has no partner. Ids are those of
// the trace.
void PairHalves(PodVector<HalfSlice> halves, Trace& trace);

}  // namespace lamina::trace
