// SPDX-License-Identifier: Apache-2.0
//
// The records of one trace as those of one rank of many: processes and ids of
// their own, times on another clock. Records are rewritten one by one, so
// memory does not grow with the trace.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/byte_sink.h"
#include "base/byte_source.h"
#include "base/status.h"

namespace lamina::emit {

struct MergedProcess {
  std::string pid;  // as in the input: 4000, or the text of a string
  int64_t merged_pid = 0;
  std::string name;
  int64_t sort_index = 0;
};

struct MergedRank {
  int64_t rank = 0;
  std::vector<MergedProcess> processes;
  int64_t id_shift = 0;  // added to the ids of flows and correlations
  // A time of the input as one of the output, in nanoseconds; must grow with
  // its argument, so that what is nested stays nested.
  std::function<int64_t(int64_t)> clock;
  bool python = false;  // keep Python frames
};

struct MergeCounts {
  uint64_t written = 0;
  uint64_t left_out = 0;  // Python frames, spans of the profiler itself
  uint64_t broken = 0;
};

// Writes the records, each followed by a comma and a line end; first those
// that name the processes. Errors: the input is no JSON, a device fails.
Result<MergeCounts> AppendRank(std::unique_ptr<ByteSource> source,
                               const MergedRank& rank, int threads,
                               ByteSink& sink);

}  // namespace lamina::emit
