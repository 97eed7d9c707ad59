// SPDX-License-Identifier: Apache-2.0
//
// What differs between two snapshots at the moments that are looked at.
#pragma once

#include "lamina/result.h"
#include "memory/tables.h"

namespace lamina::memory {

// memory_diff: rows by module, op, and file and function of the line; numbers
// of lines, addresses, streams and times never count. The deltas of all rows,
// with the one of the cache, sum to the difference of what is reserved.
// memory_diff_settings: settings that differ. memory_diff_segments: segments of
// equal address and size, which only snapshots of one process have.
Result<ResultSet> DiffRecordings(const Recording& a, const Recording& b);

}  // namespace lamina::memory
