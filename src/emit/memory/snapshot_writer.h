// SPDX-License-Identifier: Apache-2.0
//
// A memory snapshot as a Perfetto trace: per device counters of what is
// requested, allocated, active and reserved and of each category, and a track
// per segment with the allocations in it as slices. Events without times stand
// one microsecond apart.
#pragma once

#include <cstdint>

#include "base/byte_sink.h"
#include "memory/tables.h"

namespace lamina::emit {

struct WrittenSnapshot {
  uint64_t slices = 0;    // allocations
  uint64_t left_out = 0;  // smaller ones
  uint64_t counters = 0;  // samples
  uint64_t overlaps = 0;  // slices on further lanes of their segment
};

// Of a device at most the `most` largest allocations are slices.
WrittenSnapshot WriteSnapshot(const memory::Recording& recording, size_t most,
                              ByteSink& sink);

}  // namespace lamina::emit
