// SPDX-License-Identifier: Apache-2.0
//
// The page of memory snapshots: the tables of its command, and beside them
// every allocation, range of the driver and stack in columns, so that the page
// can draw any range of moments and any of its sums.
//
// facts.memory is a list with an entry per device of each recording, a series:
// its name, how many moments it has, which one is looked at, and its rows in
// the blocks below. Moments are as in memory/model.h; `end` rows are behind.
//
//   memory_allocs    born, held (allocated for so many moments), wait (active
//                    for so many more), bytes, spare (of them not asked for),
//                    place (on the map), stack, free_stack, category,
//                    confidence, rule, stream, origin (1: final block)
//   memory_ranges    place, size, born, dead, address, stream, pool (texts),
//                    kind (1 small, 2 expandable)
//   memory_reserved  moment, bytes: where what is reserved changes
//   memory_times     time of every event after the first, in us
//   memory_events    event, action (as memory::Action), bytes, place + 1 or 0,
//                    stack: events that no allocation tells of
//   memory_tags      event, text: where what the recorder noted changes
//   memory_parts     place, address (text): where the map leaves a gap
//   memory_stacks    line, op, module (texts), frames (end of its frames)
//   memory_frames    text, innermost first
//
// Places are units of 512 bytes on a map that has no gaps between segments.
#pragma once

#include <string>
#include <vector>

#include "lamina/result.h"
#include "memory/tables.h"
#include "render/html/page.h"

namespace lamina::render {
struct Secrets;
}

namespace lamina::page {

struct MemoryPageOptions {
  std::string output = "-";
  int threads = 1;
  std::vector<std::string> words;  // of the command line, behind "lamina"
  const render::Secrets* redact = nullptr;
};

// Of one recording, or of two that are compared.
Status WriteMemoryPage(const std::vector<const memory::Recording*>& recordings,
                       const Document& document,
                       const MemoryPageOptions& options);

}  // namespace lamina::page
