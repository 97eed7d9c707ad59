// SPDX-License-Identifier: Apache-2.0
//
// What stands above device events on the host: the call stack of each launch
// (Python frames, ranges and ops) and the forward op of each backward op.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/common/context.h"
#include "render/html/page.h"

namespace lamina::engine {

// Distinct stacks as a tree: each frame once below each stack that it was
// called from, so that a stack is the number of its innermost frame.
struct CallStacks {
  struct Frame {
    uint32_t parent = 0;  // frame + 1; 0: outermost
    StringId name;
  };
  std::vector<Frame> frames;  // callers before callees
  // Frame + 1 of each device event by its row of device arguments; 0: none.
  std::vector<uint32_t> of_device;

  bool empty() const { return frames.empty(); }
  // Room in a page, by the same rule as that of events: from counts alone.
  uint64_t EstimatedBytes() const;
};

CallStacks FindStacks(const analysis::Context& context);

// The block "frames"; nothing without stacks.
void AddFrames(const trace::Trace& trace, const CallStacks& stacks,
               render::Page& page);

// The block "autograd": rows + 1 of the host events of forward ops and of the
// backward ops that belong to them.
void AddAutograd(const analysis::Context& context,
                 const std::vector<uint32_t>& host_rows, render::Page& page);

}  // namespace lamina::engine
