// SPDX-License-Identifier: Apache-2.0
//
// Which stretches of an eager trace replayed kernels repeat. A captured segment
// is one graph; an eager trace holds what was called before and after it, holds
// it once where it is replayed four times, or three times where it is replayed
// once, or holds two models.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lamina::cudagraph {

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
