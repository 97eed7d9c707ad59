// SPDX-License-Identifier: Apache-2.0
//
// Unions and differences of half-open time intervals [start, end) in integer
// nanoseconds: the arithmetic behind busy, idle and exposed time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lamina {

struct Interval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;

  int64_t length_ns() const { return end_ns - start_ns; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// A set of points in time as disjoint, non-touching intervals in order.
class IntervalSet {
 public:
  IntervalSet() = default;

  // The union of `intervals` in any order; empty and negative ones are
  // ignored. O(n log n), O(n) when sorted by start.
  static IntervalSet Of(std::vector<Interval> intervals);

  // Adds an interval that starts at or after the start of every one before
  // (streaming union of sorted input).
  void AppendSorted(Interval interval);

  int64_t length_ns() const { return length_ns_; }
  bool empty() const { return intervals_.empty(); }
  std::span<const Interval> intervals() const { return intervals_; }

  IntervalSet Union(const IntervalSet& other) const;
  IntervalSet Minus(const IntervalSet& other) const;
  IntervalSet Intersect(const IntervalSet& other) const;
  // The parts of `window` outside the set, in order.
  std::vector<Interval> Gaps(Interval window) const;

  friend bool operator==(const IntervalSet&, const IntervalSet&) = default;

 private:
  std::vector<Interval> intervals_;
  int64_t length_ns_ = 0;
};

}  // namespace lamina
