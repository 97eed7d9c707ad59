// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/assign.h"

#include <algorithm>
#include <limits>

namespace lamina::cudagraph {
namespace {

// Tables above this size are not filled.
constexpr uint64_t kMaxCells = uint64_t{16} << 20;

// The increasing choice with the smallest sum, for fewer launches than
// segments; the earliest of equal ones.
std::vector<uint32_t> Increasing(
    uint32_t launches, uint32_t segments,
    const std::function<uint32_t(uint32_t, uint32_t)>& cost) {
  constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  // Cheapest for the launches from l on with the segments from s on.
  const size_t width = size_t{segments} + 1;
  std::vector<uint64_t> rest((size_t{launches} + 1) * width, kNone);
  for (size_t s = 0; s < width; ++s) rest[launches * width + s] = 0;
  for (uint32_t l = launches; l-- > 0;) {
    for (uint32_t s = segments; s-- > 0;) {
      const uint64_t next = rest[(l + 1) * width + s + 1];
      const uint64_t taken = next == kNone ? kNone : next + cost(l, s);
      rest[l * width + s] = std::min(taken, rest[l * width + s + 1]);
    }
  }
  std::vector<uint32_t> chosen;
  uint32_t s = 0;
  for (uint32_t l = 0; l < launches; ++l) {
    const auto taken = [&] {
      const uint64_t next = rest[(l + 1) * width + s + 1];
      return next != kNone && rest[l * width + s] == next + cost(l, s);
    };
    while (!taken()) ++s;
    chosen.push_back(s++);
  }
  return chosen;
}

}  // namespace

uint32_t Distance(std::span<const uint32_t> segment,
                  std::span<const uint32_t> launch) {
  if (std::ranges::equal(segment, launch)) return 0;
  std::vector<uint32_t> a(segment.begin(), segment.end());
  std::vector<uint32_t> b(launch.begin(), launch.end());
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return 1 + SortedDistance(a, b);
}

uint32_t SortedDistance(std::span<const uint32_t> a,
                        std::span<const uint32_t> b) {
  std::vector<uint32_t> odd;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(),
                                std::back_inserter(odd));
  return static_cast<uint32_t>(odd.size());
}

std::vector<uint32_t> Assign(
    uint32_t launches, uint32_t segments,
    const std::function<uint32_t(uint32_t, uint32_t)>& cost) {
  std::vector<uint32_t> alone(launches, 0);
  uint64_t least = 0;
  for (uint32_t l = 0; l < launches; ++l) {
    uint32_t best = cost(l, 0);
    for (uint32_t s = 1; s < segments && best > 0; ++s) {
      const uint32_t own = cost(l, s);
      if (own >= best) continue;
      best = own;
      alone[l] = s;
    }
    least += best;
  }
  std::vector<uint32_t> ordered;
  if (launches >= segments) {
    for (uint32_t l = 0; l < launches; ++l) ordered.push_back(l % segments);
  } else if (uint64_t{launches} * segments <= kMaxCells) {
    ordered = Increasing(launches, segments, cost);
  } else {
    return alone;
  }
  uint64_t sum = 0;
  for (uint32_t l = 0; l < launches; ++l) sum += cost(l, ordered[l]);
  return sum <= least + least / 4 ? ordered : alone;
}

}  // namespace lamina::cudagraph
