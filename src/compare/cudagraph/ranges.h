// SPDX-License-Identifier: Apache-2.0
//
// The ranges that hold a moment of a thread: annotations, and ops with the name
// of a tag, since the fast form of record_function is recorded as an op.
#pragma once

#include <re2/re2.h>
#include <vector>

#include "trace/trace.h"

namespace lamina::cudagraph {

class Ranges {
 public:
  Ranges(const trace::Trace& trace, const RE2& tags);

  // Ranges of a track that hold `at`, outermost first.
  std::vector<trace::SliceId> At(trace::TrackId track, int64_t at) const;
  bool IsTag(trace::SliceId range) const;

 private:
  struct Range {
    int64_t start_ns;
    int64_t end_ns;
    trace::SliceId slice;
    uint32_t below;  // the range under it on the stack; kNoRow: none
  };

  const trace::Trace& trace_;
  std::vector<uint8_t> is_tag_;             // by name
  std::vector<std::vector<Range>> tracks_;  // by (start, -duration)
};

}  // namespace lamina::cudagraph
