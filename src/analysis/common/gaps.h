// SPDX-License-Identifier: Apache-2.0
//
// Times in which no device worked, and what the host did meanwhile.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/common/timeline.h"

namespace lamina::analysis {

enum class GapCause : uint8_t {
  kUnknown,
  kHostBusy,       // the launching thread ran something else
  kHostBlocked,    // it sat in a call that waits for a device or copies
                   // pageable memory; the device may run work that is not in
                   // the file, so this is no proof against the host
  kLaunchLatency,  // the work was launched just before the gap began
  kQueued,         // launched long before: it waited on the device, for an
                   // event, a host function or work that is not in the file
};
std::string_view GapCauseName(GapCause cause);

struct Gap {
  Interval interval;
  GapCause cause = GapCause::kUnknown;
  SliceId host;  // innermost host event that covers at least half of it
  SliceId next;  // the work that ended it
};

// The `limit` longest gaps of a timeline, longest first.
std::vector<Gap> LongestGaps(const tree::Tree& tree, const Timeline& timeline,
                             size_t limit);

// Whether an API call of this name keeps the host until a device has done
// something, or asks for that.
bool IsBlockingCall(std::string_view name);

}  // namespace lamina::analysis
