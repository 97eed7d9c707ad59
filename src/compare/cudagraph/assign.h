// SPDX-License-Identifier: Apache-2.0
//
// Which captured segment each graph launch of a step replays, when the contents
// alone cannot tell: the layers of a model are captured one by one and most of
// them hold the same kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace lamina::cudagraph {

// How badly a segment fits a launch: 0 for equal sequences, else 1 plus the
// number of elements that one has and the other lacks.
// The same of tokens that are sorted; 0 where these are equal.
uint32_t SortedDistance(std::span<const uint32_t> a,
                        std::span<const uint32_t> b);
uint32_t Distance(std::span<const uint32_t> segment,
                  std::span<const uint32_t> launch);

// `cost(launch, segment)` of `launches` launches in their order and `segments`
// segments in the order of capture. Returns a segment for each launch: the k-th
// to the k-th, again from the first after the last, or an increasing choice
// when there are fewer launches; but the best one for each launch alone when an
// order costs a quarter more than that.
std::vector<uint32_t> Assign(
    uint32_t launches, uint32_t segments,
    const std::function<uint32_t(uint32_t, uint32_t)>& cost);

}  // namespace lamina::cudagraph
