// SPDX-License-Identifier: Apache-2.0
//
// What a page holds of a trace with too many device events: the slowest of
// each kernel name and those around findings as they are, the sums of all
// others by what they belong to, and the busy time of all in buckets of time.
// Single events and merged ones together add up to all of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "page/device.h"

namespace lamina::page {

// Events that have everything but their times in common.
struct MergedRow {
  DeviceRow of;  // dur_ns is the sum
  int64_t events = 0;
};

// Busy time of one family of a lane in [bucket, bucket + 1) * bucket_ns since
// the first device event.
struct BucketRow {
  uint32_t lane = 0;
  uint32_t family = 0;
  int64_t bucket = 0;
  int64_t busy_ns = 0;
};

struct ThinRows {
  std::vector<uint32_t> singles;  // positions of rows, rising
  std::vector<MergedRow> merged;
  // Columns that would have made too many merged rows; 0 in all of them.
  std::vector<std::string_view> dropped;
  int64_t origin_ns = 0;  // first start and last end of all rows
  int64_t last_ns = 0;
  int64_t bucket_ns = 0;
  std::vector<BucketRow> buckets;  // by lane, bucket, family
};

// A row of `rows` is around a finding if it is at most this far from an event
// of one in its lane.
inline constexpr size_t kAround = 8;

// `names` says which rows have a kernel name in common; `found` marks the
// rows that findings name. Keeps at most `most` rows of each kind, if the
// kernels, ops and modules do not need more.
ThinRows Thin(std::span<const DeviceRow> rows, std::span<const uint32_t> names,
              const std::vector<bool>& found, size_t most);

}  // namespace lamina::page
