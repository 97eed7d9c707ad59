// SPDX-License-Identifier: Apache-2.0
//
// Host slices of a capture trace copied below a graph launch of its replay, so
// that replayed work has a call, an op and a module above it like eager work.
// With module_frames.h the one change to a trace that is allowed after its
// builder has finished.
#pragma once

#include <vector>

#include "trace/trace.h"

namespace lamina::trace {

class Grafter {
 public:
  // More captured slices than this are refused: memory is not the input's to
  // choose.
  static constexpr size_t kMaxSlices = size_t{64} << 20;

  explicit Grafter(Trace& trace);

  // The trace that the next slices come from; it must outlive the grafter's
  // use of it.
  void From(const Trace& capture);
  bool HasRoom(size_t slices) const;
  // Copies a host slice below `launch`. `parent` is what an earlier Add below
  // the same launch returned, or invalid. Call in preorder, launch by launch.
  SliceId Add(SliceId captured, SliceId launch, SliceId parent);
  // A replayed device slice comes from a call that Add returned: a fact, or the
  // likely one.
  void Link(SliceId device, SliceId call, bool fact);

 private:
  StringId Map(StringId id);
  uint8_t MapCategory(uint8_t category);
  int CategoryIndex(StringId name);

  Trace& trace_;
  const Trace* capture_ = nullptr;
  uint32_t next_uid_ = 0;
  std::vector<StringId> strings_;  // of the capture, as ids of the trace
  std::vector<int> categories_;
};

}  // namespace lamina::trace
