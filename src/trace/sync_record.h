// SPDX-License-Identifier: Apache-2.0
//
// What a profiler records of a wait on the device: a stream that waits for an
// event of another stream, or the streams that a synchronizing call waits for.
// Such records are slices of kind kOther. They are few and never looked at one
// by one, so they have no table of their own: a row of Trace::api_calls holds
// them, and these functions are the only ones that read and write it.
#pragma once

#include <optional>

#include "trace/segment.h"
#include "trace/trace.h"

namespace lamina::trace {

struct SyncRecord {
  int64_t correlation = kNoInt;  // of the API call
  int64_t device = kNoInt;
  int64_t stream = kNoInt;  // that waits, or that is waited for by the host
  // Of a wait of one stream for another: where the event was recorded, and the
  // correlation of the call that recorded it.
  int64_t source_stream = kNoInt;
  int64_t source_record = kNoInt;
};

// A row for `detail` of the slice.
uint32_t AddSync(const SyncRecord& sync, Segment& segment);

// Nothing for slices of other kinds and those without such a row.
std::optional<SyncRecord> SyncOf(const Trace& trace, SliceId s);

}  // namespace lamina::trace
