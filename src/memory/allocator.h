// SPDX-License-Identifier: Apache-2.0
//
// How the caching allocator turns a request into a block and a segment: the
// constants of data/memory/allocator.yaml and the settings of one process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "rules/document.h"

namespace lamina::memory {

struct AllocatorRules {
  int64_t block = 0;
  int64_t small_limit = 0;
  int64_t small_segment = 0;
  int64_t large_segment = 0;
  int64_t large_request = 0;
  int64_t segment_multiple = 0;
  int64_t unsplit_rest = 0;
  int64_t unsplit_excess = 0;

  static Result<AllocatorRules> Load(const rules::DataSet& data);
};

class Allocator {
 public:
  // `settings` are the pairs of Snapshot::settings.
  Allocator(AllocatorRules rules,
            const std::vector<std::pair<std::string, std::string>>& settings);

  // Bytes of a block for a request.
  int64_t Rounded(int64_t bytes) const;
  bool IsSmall(int64_t rounded) const { return rounded <= rules_.small_limit; }
  // Of the segment that is asked of the driver.
  int64_t SegmentOf(int64_t rounded) const;
  // Bytes of the block that a request gets where `room` are free.
  int64_t BlockIn(int64_t rounded, int64_t room) const;

  const AllocatorRules& rules() const { return rules_; }
  bool expandable() const { return expandable_; }
  int64_t max_split() const { return max_split_; }

 private:
  AllocatorRules rules_;
  int64_t max_split_;
  bool expandable_ = false;
  int64_t divisions_[64] = {};  // by the place of the interval; 0: none
  int intervals_ = 0;
};

}  // namespace lamina::memory
