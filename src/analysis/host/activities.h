// SPDX-License-Identifier: Apache-2.0
//
// What the launching thread did in those parts of idle time for which the host
// is to blame.
#pragma once

#include "analysis/host/idle.h"

namespace lamina::analysis::host {

// Cuts the parts that are host_bound where the activity of the launching
// thread changes, and fills their `activity` and `idle.activities`. The
// innermost frame, range, op or call whose name a rule knows decides for all
// that runs inside; without one the innermost op, else the call outside ops,
// the innermost Python frame, or the range. O(n log n) in the events that
// overlap such parts.
void LabelHostParts(const HostModel& model, const rules::PatternTable& rules,
                    Idle& idle);

}  // namespace lamina::analysis::host
