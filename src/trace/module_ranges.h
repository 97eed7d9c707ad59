// SPDX-License-Identifier: Apache-2.0
//
// Ranges of the host that are calls of modules, whole or in two parts.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <vector>

#include "base/interval_set.h"
#include "trace/module_frames.h"

namespace lamina::trace {

struct ModuleRange {
  TrackId track;
  Interval time;
  SliceId slice;
  SliceId last;  // of a call in two parts the end, else as `slice`
  const ModuleMarker* marker = nullptr;
};

// Outer ranges of a thread before inner ones.
void SortByNesting(const Trace& trace, std::vector<ModuleRange>& ranges);

// Joins the begin and the end of each call to one range. Calls nest: an end
// closes the innermost open call of its path. A recording may be cut within a
// call: when all that follows the begin of a call without an end is below its
// path, it lasts as long as its thread, and so backwards for an end without a
// begin. What else has no partner is a range of its own. The ranges are in
// order of nesting, and so is the result.
std::vector<ModuleRange> JoinParts(const Trace& trace,
                                   const std::vector<ModuleRange>& ranges);

}  // namespace lamina::trace
