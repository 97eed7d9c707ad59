// SPDX-License-Identifier: Apache-2.0
#include "ingest/nsys/calls.h"

#include <algorithm>
#include <numeric>

namespace lamina::ingest::nsys {

uint64_t ClipOverlaps(std::vector<CallRow>& rows) {
  std::vector<uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](uint32_t a, uint32_t b) {
    const CallRow& x = rows[a];
    const CallRow& y = rows[b];
    if (x.global_tid != y.global_tid) return x.global_tid < y.global_tid;
    if (x.start_ns != y.start_ns) return x.start_ns < y.start_ns;
    if (x.end_ns != y.end_ns) return x.end_ns > y.end_ns;
    return a < b;
  };
  if (!std::is_sorted(order.begin(), order.end(), before))
    std::sort(order.begin(), order.end(), before);
  uint64_t clipped = 0;
  std::vector<uint32_t> open;
  for (const uint32_t i : order) {
    const CallRow& row = rows[i];
    while (!open.empty()) {
      CallRow& outer = rows[open.back()];
      const bool apart =
          outer.global_tid != row.global_tid || outer.end_ns <= row.start_ns;
      if (!apart && outer.end_ns >= row.end_ns) break;
      if (!apart) {
        outer.end_ns = row.start_ns;
        ++clipped;
      }
      open.pop_back();
    }
    open.push_back(i);
  }
  return clipped;
}

}  // namespace lamina::ingest::nsys
