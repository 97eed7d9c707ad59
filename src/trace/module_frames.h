// SPDX-License-Identifier: Apache-2.0
//
// Calls of modules from ranges of the host that name them (NVTX, roctx,
// record_function), added to a trace as slices of kind kPython, like the frames
// of a profiler that records modules itself: what reads modules need not know
// where they come from. With Grafter (graft.h) the one change to a trace after
// its builder has finished.
//
// What encloses what follows from the ranges of a thread. Of its path a range
// adds what the ranges around it do not say already: "model.layers.7.mlp"
// within "model.layers.7" is one call, "mlp". A part of a path that no range
// stands for
// ("model" and "layers.7" of a lone "model.layers.7.mlp") is a call too: it
// lasts as long as the ranges that follow are of the same part and none of them
// comes again, since then the module is called again.
//
// A process whose profiler recorded module frames gets no others: its ranges
// are most likely written around the same calls, under names that cannot be
// matched ("model.layers.7" and "DecoderLayer_7").
#pragma once

#include <absl/container/flat_hash_map.h>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace lamina::trace {

// Names of module frames begin so: "nn.Module: Linear_21".
inline constexpr std::string_view kModulePrefix = "nn.Module: ";

// What a range of some name tells of a call.
struct ModuleMarker {
  enum class Extent : uint8_t { kWhole, kBegin, kEnd };

  std::vector<StringId> path;  // names of frames, from the outermost; not empty
  Extent extent = Extent::kWhole;
  bool backward = false;
};
using ModuleMarkers = absl::flat_hash_map<StringId, ModuleMarker>;

// Whether a slice is such a frame, the first range that names its call, the one
// that ends it (the same one for a call that is one range; invalid for a part
// of a path that no range stands for), and whether it is a backward pass. A
// frame has Python arguments that no profiler writes.
bool IsRangeFrame(const Trace& trace, SliceId s);
SliceId RangeOfFrame(const Trace& trace, SliceId frame);
SliceId LastRangeOfFrame(const Trace& trace, SliceId frame);
bool IsBackwardFrame(const Trace& trace, SliceId s);
// Slices below this are events of the input; behind them stand the frames, then
// what was grafted.
uint32_t RecordedSlices(const Trace& trace);

// Kinds of slices that may name a call. Ops too: under emit_nvtx PyTorch writes
// ranges of record_function like ops.
constexpr bool MayNameModule(Kind kind) {
  return kind == Kind::kAnnotation || kind == Kind::kOp;
}

// Adds the frames of all ranges whose names are in `markers`. Ranges that
// cross others are left out, counted in the diagnostics. To be called once,
// before anything is grafted.
void AddModuleFrames(Trace& trace, const ModuleMarkers& markers);

}  // namespace lamina::trace
