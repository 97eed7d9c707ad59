// SPDX-License-Identifier: Apache-2.0
//
// CUDA calls as the recorder wrote them, and where their times disagree.
#pragma once

#include <cstdint>
#include <vector>

namespace lamina::ingest::nsys {

struct CallRow {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t global_tid = 0;
  int64_t correlation = 0;
  uint32_t name = 0;  // ExportFacts::SharedName
};

// Calls of a thread are inside each other or apart. Where clocks disagree, the
// earlier of two that overlap otherwise is cut off; returns how many.
uint64_t ClipOverlaps(std::vector<CallRow>& rows);

}  // namespace lamina::ingest::nsys
