// SPDX-License-Identifier: Apache-2.0
//
// What stands above device events on the host: the call stack of each launch
// (Python frames, ranges and ops) and the forward op of each backward op.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "analysis/common/context.h"
#include "page/host.h"
#include "render/html/page.h"

namespace lamina::page {

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
  // Room in a page that has the stacks of so many device events, by the same
  // rule as that of events: from counts alone.
  uint64_t EstimatedBytes(size_t device_events) const;
};

// The stacks of some device events, and the frames that those need.
CallStacks FindStacks(const analysis::Context& context,
                      std::span<const trace::SliceId> devices);

// All ranges, and what stands above the launches of some device events.
HostMask HostAbove(const analysis::Context& context,
                   std::span<const trace::SliceId> devices);

// The block "frames"; nothing without stacks.
void AddFrames(const trace::Trace& trace, const CallStacks& stacks,
               render::Page& page);

// The block "autograd": rows + 1 of the host events of forward ops and of the
// backward ops that belong to them.
void AddAutograd(const analysis::Context& context,
                 const std::vector<uint32_t>& host_rows, render::Page& page);

}  // namespace lamina::page
