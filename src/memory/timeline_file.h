// SPDX-License-Identifier: Apache-2.0
//
// Files of export_memory_timeline of torch.profiler: bytes by category over
// time. They hold no blocks, so only the curves and the peak follow.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "lamina/result.h"

namespace lamina::memory {

// Whether the unpacked bytes of a file begin like one: a list of lists of
// numbers.
bool LooksLikeTimeline(std::string_view head);

// `name` is the file in messages. Both layouts are read: [times, sizes] in
// microseconds, and the raw list of [time, action, bytes, category]. Errors:
// kInput for other contents.
Result<ResultSet> ReadTimeline(const std::string& name, std::string_view text,
                               size_t rows);

}  // namespace lamina::memory
