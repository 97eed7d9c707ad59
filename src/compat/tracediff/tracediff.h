// SPDX-License-Identifier: Apache-2.0
//
// diff_stats and diff_stats_unique_args_summary as TraceLens' TraceDiff names
// them: one row per device event below a lowest common ancestor.
//
// The lowest common ancestor (LCA) of an event is the deepest call above it
// that both traces have. Events of both sides below one LCA did its work; where
// they are launched by equal calls, one by one, each pair is an LCA of its own.
// Trees are matched as `lamina diff` does, so what only one side wraps and what
// stands at another place is found, which TraceDiff's positions miss.
#pragma once

#include "compare/diff/diff.h"
#include "lamina/result.h"

namespace lamina::compat::tracediff {

// Every device event that is joined to a launch is in one row: kernel_time of
// a side adds up to the durations of those, in microseconds. Trees with Python
// frames give nn_module_stack; without it is "root".
ResultSet MakeSheets(const analysis::Context& a, const analysis::Context& b);

}  // namespace lamina::compat::tracediff
