// SPDX-License-Identifier: Apache-2.0
//
// A set of points in time that answers how much of an interval it covers in
// O(log n).
#pragma once

#include <cstdint>
#include <vector>

#include "base/interval_set.h"

namespace lamina::analysis::host {

class Cover {
 public:
  Cover() : before_{0} {}
  // The union of `intervals` in any order.
  explicit Cover(std::vector<Interval> intervals);

  // Length of the part of [from, to) that is covered; 0 if to <= from.
  int64_t Over(int64_t from, int64_t to) const {
    return to > from ? UpTo(to) - UpTo(from) : 0;
  }
  // Both are sets; the part of this one that the other does not have.
  Cover Minus(const Cover& other) const;
  // The disjoint intervals of the set, by start.
  std::span<const Interval> intervals() const { return set_.intervals(); }
  // Position of the first interval that ends after `time`.
  size_t FirstAfter(int64_t time) const;
  // The same, looked for from a position that an earlier answer gave: times
  // that follow each other cost O(1).
  size_t FirstAfter(int64_t time, size_t near) const;

 private:
  int64_t UpTo(int64_t time) const;

  IntervalSet set_;
  std::vector<int64_t> before_;  // covered before interval i
};

}  // namespace lamina::analysis::host
