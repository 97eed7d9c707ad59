// SPDX-License-Identifier: Apache-2.0
#include "base/interval_set.h"

#include <algorithm>

#include "base/run_sort.h"

namespace lamina {
namespace {

bool StartsBefore(const Interval& a, const Interval& b) {
  return a.start_ns < b.start_ns;
}

}  // namespace

IntervalSet IntervalSet::Of(std::vector<Interval> intervals) {
  RunSort(intervals, 1, StartsBefore);
  // In place: there may be millions.
  size_t kept = 0;
  IntervalSet set;
  for (const Interval& interval : intervals) {
    if (interval.end_ns <= interval.start_ns) continue;
    if (kept > 0 && interval.start_ns <= intervals[kept - 1].end_ns) {
      int64_t& end = intervals[kept - 1].end_ns;
      end = std::max(end, interval.end_ns);
    } else {
      intervals[kept++] = interval;
    }
  }
  intervals.resize(kept);
  if (kept < intervals.capacity() / 2) intervals.shrink_to_fit();
  for (const Interval& interval : intervals)
    set.length_ns_ += interval.length_ns();
  set.intervals_ = std::move(intervals);
  return set;
}

void IntervalSet::AppendSorted(Interval interval) {
  if (interval.end_ns <= interval.start_ns) return;
  if (!intervals_.empty() && interval.start_ns <= intervals_.back().end_ns) {
    Interval& last = intervals_.back();
    if (interval.end_ns > last.end_ns) {
      length_ns_ += interval.end_ns - last.end_ns;
      last.end_ns = interval.end_ns;
    }
    return;
  }
  intervals_.push_back(interval);
  length_ns_ += interval.length_ns();
}

IntervalSet IntervalSet::Union(const IntervalSet& other) const {
  IntervalSet out;
  out.intervals_.reserve(intervals_.size() + other.intervals_.size());
  auto a = intervals_.begin();
  auto b = other.intervals_.begin();
  while (a != intervals_.end() || b != other.intervals_.end()) {
    const bool take_a = b == other.intervals_.end() ||
                        (a != intervals_.end() && a->start_ns <= b->start_ns);
    out.AppendSorted(take_a ? *a++ : *b++);
  }
  return out;
}

IntervalSet IntervalSet::Minus(const IntervalSet& other) const {
  IntervalSet out;
  auto hole = other.intervals_.begin();
  for (const Interval& interval : intervals_) {
    int64_t start = interval.start_ns;
    while (hole != other.intervals_.end() && hole->end_ns <= start) ++hole;
    for (auto h = hole;
         h != other.intervals_.end() && h->start_ns < interval.end_ns; ++h) {
      out.AppendSorted({start, h->start_ns});
      start = std::max(start, h->end_ns);
    }
    out.AppendSorted({start, interval.end_ns});
  }
  return out;
}

IntervalSet IntervalSet::Intersect(const IntervalSet& other) const {
  IntervalSet out;
  auto a = intervals_.begin();
  auto b = other.intervals_.begin();
  while (a != intervals_.end() && b != other.intervals_.end()) {
    out.AppendSorted(
        {std::max(a->start_ns, b->start_ns), std::min(a->end_ns, b->end_ns)});
    if (a->end_ns < b->end_ns) {
      ++a;
    } else {
      ++b;
    }
  }
  return out;
}

std::vector<Interval> IntervalSet::Gaps(Interval window) const {
  IntervalSet whole;
  whole.AppendSorted(window);
  const IntervalSet gaps = whole.Minus(*this);
  return {gaps.intervals_.begin(), gaps.intervals_.end()};
}

}  // namespace lamina
