// SPDX-License-Identifier: Apache-2.0
//
// A set of points in time that answers how much of an interval it covers in
// O(log n).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/interval_set.h"

namespace lamina::analysis::host {

// The first position in [0, count) that `before` is false for, count if there
// is none; it is true for all positions before that one. Looked for from
// `near` in steps of doubling length: answers that follow each other cost O(1).
template <class Before>
size_t BoundNear(size_t count, size_t near, const Before& before) {
  size_t low = std::min(near, count), high = low, step = 1;
  while (low > 0 && !before(low - 1)) {
    high = low - 1;
    low -= std::min(low, step);
    step *= 2;
  }
  step = 1;
  while (high < count && before(high)) {
    low = high + 1;
    high += std::min(count - high, step);
    step *= 2;
  }
  // The answer lies in [low, high].
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (before(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

class Cover {
 public:
  Cover() : before_{0} {}
  // The union of `intervals` in any order.
  explicit Cover(std::vector<Interval> intervals);
  explicit Cover(IntervalSet set);

  // Length of the part of [from, to) that is covered; 0 if to <= from.
  int64_t Over(int64_t from, int64_t to) const {
    return to > from ? UpTo(to) - UpTo(from) : 0;
  }
  // Both are sets; what either has.
  Cover Plus(const Cover& other) const;
  // The part of this one that the other does not have.
  Cover Minus(const Cover& other) const;
  // The disjoint intervals of the set, by start.
  std::span<const Interval> intervals() const { return set_.intervals(); }
  // Position of the first interval that ends after `time`.
  size_t FirstAfter(int64_t time) const;
  // The same, looked for from a position that an earlier answer gave.
  size_t FirstAfter(int64_t time, size_t near) const;

 private:
  int64_t UpTo(int64_t time) const;

  IntervalSet set_;
  std::vector<int64_t> before_;  // covered before interval i
};

// Cuts [from, to) by `cover`: inside(a, b) and outside(a, b) in order.
template <class Inside, class Outside>
void Cut(const Cover& cover, int64_t from, int64_t to, const Inside& inside,
         const Outside& outside) {
  const auto all = cover.intervals();
  int64_t at = from;
  for (size_t i = cover.FirstAfter(from);
       i < all.size() && all[i].start_ns < to; ++i) {
    const int64_t start = std::max(all[i].start_ns, at);
    const int64_t end = std::min(all[i].end_ns, to);
    if (start > at) outside(at, start);
    if (end > start) inside(start, end);
    at = end;
  }
  if (to > at) outside(at, to);
}

}  // namespace lamina::analysis::host
