// SPDX-License-Identifier: Apache-2.0
//
// From launches to runs of instructions.
#pragma once

#include "ingest/xplane/pending.h"
#include "ingest/xplane/programs.h"
#include "ingest/xplane/rows.h"

namespace lamina::ingest::xplane {

// All runs, backwards by track and start; the launches are spent. Calls move to
// the tracks of their runs, nameless kernels get the links of theirs.
// Near-linear.
Waiting<Run> MakeRuns(Pending& pending, Rows& rows);

// A named scope of a program around runs.
struct Scope {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  trace::TrackId track;
  StringId name;
  uint32_t depth = 0;
  uint32_t number = 0;  // in the order in which they begin
};

// Scopes last as long as the runs of a thread share them; in the order of their
// ends.
Waiting<Scope> MakeScopes(const Waiting<Run>& runs, const Programs& programs);

// Runs of several devices on one thread at the same time move to tracks of
// their own, with their calls: ops of one track nest. The runs are in the order
// of MakeRuns().
void SeparateDevices(Waiting<Run>& runs, Pending& pending, Rows& rows);

// That order.
void SortRuns(Waiting<Run>& runs);

// Ops of TPU lines become kernels and runs.
void EmitTpuOps(Pending& pending, const Programs& programs, Rows& rows);

// Makes runs and emits what waits: TPU ops, scopes, ops, calls and nameless
// kernels, in this order. The pending rows are spent.
void EmitPending(Pending& pending, Programs& programs, Rows& rows);

}  // namespace lamina::ingest::xplane
