// SPDX-License-Identifier: Apache-2.0
//
// Which idle time each blocking call is to blame for.
//
// A call that waits for the device costs nothing while the device works. What
// it costs begins when the device has drained: the time until the call returns,
// until the next launch arrives, and, if the host was ahead before the call,
// the gaps until it is ahead again. The last are limited by how far it was
// ahead, and are no fault of the call if the host does not get ahead again:
// then it is too slow anyway.
#pragma once

#include <vector>

#include "analysis/host/idle.h"

namespace lamina::analysis::host {

// By position in Idle::parts: the blocking call; invalid where there is none.
std::vector<SliceId> SyncOfParts(const HostModel& model, const Idle& idle);

}  // namespace lamina::analysis::host
