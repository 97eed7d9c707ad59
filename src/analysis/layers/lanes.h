// SPDX-License-Identifier: Apache-2.0
//
// The sequences of kernels in which repeats are looked for: one of each stream.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/layers/labels.h"

namespace lamina::analysis::layers {

// Kernels of one stream by start; of the classic detector, of one device.
struct Lane {
  int64_t device = 0;
  std::vector<SliceId> kernels;
};

std::vector<Lane> MakeLanes(const Trace& trace, bool one_per_device);

// Norms, attention and products of a lane, and where steps begin: for every
// kernel the bits of enum Mark.
std::vector<uint8_t> MarksOf(const Context& context, Labels& labels,
                             const Lane& lane);

void SortByStart(const Trace& trace, std::vector<SliceId>& work);
int64_t DeviceOf(const Trace& trace, SliceId s);

}  // namespace lamina::analysis::layers
