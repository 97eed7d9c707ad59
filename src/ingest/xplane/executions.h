// SPDX-License-Identifier: Apache-2.0
//
// Executions of programs on the host: ranges that hold the launches of one run
// of a program.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <span>
#include <vector>

#include "ingest/xplane/pending.h"

namespace lamina::ingest::xplane {

class Executions {
 public:
  // Takes the executions out of `pending`, whose calls are in order of line.
  explicit Executions(Pending& pending);

  // The number of the execution in which a call is made; kNoRow for none.
  uint32_t Of(const Call& call) const;

 private:
  void PairLines(const Waiting<Call>& calls);
  trace::TrackId OwnerOf(std::span<const Call> line, size_t sample) const;
  uint32_t At(trace::TrackId track, int64_t time_ns) const;

  PodVector<Execution> rows_;           // by line and start
  std::vector<trace::TrackId> tracks_;  // lines with executions
  // Line of calls to line of executions.
  absl::flat_hash_map<trace::TrackId, trace::TrackId> line_of_;
};

}  // namespace lamina::ingest::xplane
