// SPDX-License-Identifier: Apache-2.0
//
// The sequences of kernels in which layers are looked for: one of each stream,
// and what is known of each kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/layers/labels.h"
#include "analysis/layers/repeats.h"

namespace lamina::analysis::layers {

// Kernels of one stream by start; of the classic detector, or where the kernels
// of a layer are spread over streams, of one device.
struct Lane {
  int64_t device = 0;
  std::vector<SliceId> kernels;
};

std::vector<Lane> MakeLanes(const Trace& trace, bool one_per_device);

// Why no layer goes across a place.
enum class CutBy : uint8_t { kNothing, kStep, kGraph };

struct LaneView {
  std::vector<uint32_t> ids;    // names
  std::vector<uint32_t> like;   // equal for names that differ in numbers only
  std::vector<uint16_t> marks;  // bits of enum Mark
  std::vector<CutBy> cuts;      // before each kernel
  // The graph launch that holds whole passes, 0 for none.
  std::vector<uint64_t> graphs;
};
LaneView ViewOf(const Context& context, Labels& labels, const Lane& lane);

void SortByStart(const Trace& trace, std::vector<SliceId>& work);
int64_t DeviceOf(const Trace& trace, SliceId s);

}  // namespace lamina::analysis::layers
