// SPDX-License-Identifier: Apache-2.0
//
// What pages of one trace and of several have in common: host events thread by
// thread, the lanes of device events, and the families of kernels.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/common/context.h"
#include "lamina/result.h"
#include "render/html/page.h"

namespace lamina::page {

// Bytes per event after compression, as measured on real traces; the choice
// of detail must not depend on how well this trace compresses, or a page
// could change its content with the version of zlib.
inline constexpr uint64_t kDeviceEventBytes = 8;
inline constexpr uint64_t kHostEventBytes = 6;

// Which host events a page holds; each step keeps less than the one before.
enum class HostDetail {
  kAll,
  kNoStacks,  // every event, but no call stacks
  kNoDeepCalls,
  kWithDeviceWork,
  kRanges,
  kNone
};

// Some host events by slice; empty: all.
using HostMask = std::vector<bool>;

struct HostCounts {
  uint64_t calls = 0;  // ops and calls
  uint64_t ranges = 0;
  uint64_t total() const { return calls + ranges; }
};
void CountHost(const trace::Trace& trace, const HostMask& of,
               HostCounts& counts);

// How much of them fits beside `device` rows of events.
HostDetail ChooseDetail(const HostCounts& host, uint64_t device,
                        uint64_t max_bytes);
// Whether `more` bytes fit beside that many device and host events.
bool FitsPage(uint64_t device_events, uint64_t host_events, uint64_t more,
              uint64_t max_bytes);
std::string_view WhatIsLeftOut(HostDetail detail);
// A warning that says it.
Note LeftOutNote(HostDetail detail, uint64_t max_bytes);

// Python functions enter a page if they last at least this long; never: none
// do.
inline constexpr int64_t kNoPython = std::numeric_limits<int64_t>::max();

// The least length with which they fit beside `bytes` of the page: those that
// called a function that is in are in, too. Modules are not meant.
int64_t ChoosePython(const trace::Trace& trace, uint64_t bytes,
                     uint64_t max_bytes);

// One of the traces of a page, and how its events enter it.
struct PageTrace {
  uint32_t index = 0;
  int64_t shift_ns = 0;   // added to times since its first event
  int64_t first_uid = 0;  // added to its event numbers
};

// The block "host": threads of the first trace, then those of the next.
class HostEvents {
 public:
  // Row + 1 in the block by slice; 0 for those that the page leaves out, which
  // are those that are not in `mask` and what `detail` says.
  std::vector<uint32_t> Add(const analysis::Context& context, HostDetail detail,
                            const HostMask& mask, const PageTrace& of,
                            render::PageStrings& strings,
                            int64_t python_ns = kNoPython);
  // The block, and the fact that describes its tracks.
  void AddTo(render::Page& page) const;

 private:
  std::vector<int64_t> start_, dur_, name_, kind_, uid_;
  std::string tracks_;
};

// Above every event number of a trace.
int64_t EndOfUids(const trace::Trace& trace);

// A lane of device events as JSON, with a comma before each but the first.
struct PageLane {
  uint32_t trace = 0;
  std::string_view process;
  int64_t device = trace::kNoInt;
  int64_t stream = trace::kNoInt;
};
void AppendLane(const PageLane& lane, size_t begin, size_t end,
                std::string& json);

// All of a trace. `events` is how many each has in the page; nothing: all.
// `row` is the first row of their events and moves behind the last.
void AppendLanes(const trace::Trace& trace, const PageTrace& of,
                 std::span<const size_t> events, size_t& row,
                 std::string& json);

std::string FamiliesJson(const rules::Catalog& catalog);

// What stands above device events on the host: the call stack of each launch
// (Python frames, ranges and ops) and the forward op of each backward op.

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
