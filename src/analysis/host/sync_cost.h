// SPDX-License-Identifier: Apache-2.0
//
// Which idle time each blocking call is to blame for.
//
// A call that waits for the device costs nothing while the device works. What
// it costs is idle time that would not be without it: the run is played again
// with host calls that come earlier by what the thread waited before them. Of a
// gap that becomes shorter the call before it has the difference: the time
// until it returns, until the next launch arrives, and the gaps until the host
// is ahead again. Gaps of a host that is too slow anyway stay as they are, and
// are no fault of a call.
//
// An op that reads a value back (aten::nonzero, and aten::index around it) has
// more than its wait: launches and allocations that depend on the value. Its
// time goes with the read, but for what one plain op takes.
//
// The second run keeps the order of work of each stream, what launching takes
// and all waits that are no fault of the host. O(n log n). A long stop of the
// host stays one, too, though without any wait before it would be hidden.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/host/idle.h"

namespace lamina::analysis::host {

// By position in Idle::parts: the blocking call; invalid where there is none.
// Parts are charged whole: what is charged too much or too little, at most half
// a part, goes on to the next gap of the device.
std::vector<SliceId> SyncOfParts(const HostModel& model, const Idle& idle);

// Whether an op of this name needs a value, or the size of its result, of the
// device on the host.
bool ReadsBack(std::string_view op);

}  // namespace lamina::analysis::host
