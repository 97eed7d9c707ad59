// SPDX-License-Identifier: Apache-2.0
//
// Where replays begin and end, the ranges that hold a moment of a thread, and
// which stretches of an eager trace replayed kernels repeat.
#pragma once

#include <cstdint>
#include <optional>
#include <re2/re2.h>
#include <span>
#include <vector>

#include "compare/cudagraph/annotate.h"
#include "trace/trace.h"

namespace lamina::cudagraph {

// The launches of graphs in a trace in order of their start, each with its
// device work. `batch`: that of all launches; else as ranges around them say.
std::vector<Replay> FindReplays(const analysis::Context& context,
                                std::optional<int64_t> batch);

// The ranges that hold a moment of a thread: annotations, and ops with the name
// of a tag, since the fast form of record_function is recorded as an op.

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

// Which stretches of an eager trace replayed kernels repeat. A captured segment
// is one graph; an eager trace holds what was called before and after it, holds
// it once where it is replayed four times, or three times where it is replayed
// once, or holds two models.

// replay[replay_begin, replay_end) follows capture[capture_begin, capture_end),
// with few elements more, less or other.
struct Piece {
  uint32_t replay_begin = 0;
  uint32_t replay_end = 0;
  uint32_t capture_begin = 0;
  uint32_t capture_end = 0;
};

// A piece without a jump, and its parts between the breaks of the replay.
struct Stretch {
  Piece whole;
  std::vector<Piece> pieces;
};

// Whether a table for the two lengths may be filled.
bool FitsStretches(size_t capture, size_t replay);

// The cheapest way to read the replay along the capture with jumps to any
// place; a jump costs as much as several odd elements. Stretches in the order
// of the replay; elements between them follow nothing. `breaks` are positions
// of the replay, ascending, before which something new begins (a launch): it
// may go on in the capture all the same. Time and memory (bytes) are the
// product of the lengths. Of equally cheap ways the one through the earliest
// places.
std::vector<Stretch> FindStretches(std::span<const uint32_t> capture,
                                   std::span<const uint32_t> replay,
                                   std::span<const uint32_t> breaks = {});

// Where capture[begin, end) stands in the capture, itself included, ascending.
std::vector<uint32_t> Occurrences(std::span<const uint32_t> capture,
                                  uint32_t begin, uint32_t end);

}  // namespace lamina::cudagraph
