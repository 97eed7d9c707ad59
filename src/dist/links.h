// SPDX-License-Identifier: Apache-2.0
//
// What the links carry: transfer times by size, and the straight line through
// them (a latency and a bandwidth) that says what to expect of other sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/measure.h"

namespace lamina::dist {

struct LinkSize {
  int64_t bytes = 0;        // full message
  double link_bytes = 0;    // that a link moves: bytes x bus factor
  int64_t transfer_ns = 0;  // median
  uint64_t calls = 0;
};

// Collectives of one kind over groups of one description and size.
struct LinkSeries {
  std::string description;  // of the groups; of a nameless one the group
  CollectiveKind kind = CollectiveKind::kUnknown;
  int64_t ranks = 0;
  std::vector<LinkSize> sizes;  // ascending
  // Fit over the sizes; both 0 with fewer than two that differ enough.
  double latency_ns = 0;
  double bytes_per_ns = 0;
};

// By description, kind and ranks. Only collectives of which every rank or the
// last to start is known.
std::vector<LinkSeries> FindLinks(const Measured& measured);

}  // namespace lamina::dist
