// SPDX-License-Identifier: Apache-2.0
#include "analysis/host/cover.h"

#include <algorithm>

namespace lamina::analysis::host {

Cover::Cover(std::vector<Interval> intervals)
    : Cover(IntervalSet::Of(std::move(intervals))) {}

Cover::Cover(IntervalSet set) : set_(std::move(set)) {
  before_.reserve(set_.intervals().size() + 1);
  before_.push_back(0);
  for (const Interval& i : set_.intervals())
    before_.push_back(before_.back() + i.length_ns());
}

Cover Cover::Plus(const Cover& other) const {
  return Cover(set_.Union(other.set_));
}

Cover Cover::Minus(const Cover& other) const {
  return Cover(set_.Minus(other.set_));
}

size_t Cover::FirstAfter(int64_t time) const {
  const auto all = set_.intervals();
  return static_cast<size_t>(std::upper_bound(all.begin(), all.end(), time,
                                              [](int64_t t, const Interval& i) {
                                                return t < i.end_ns;
                                              }) -
                             all.begin());
}

size_t Cover::FirstAfter(int64_t time, size_t near) const {
  const auto all = set_.intervals();
  return BoundNear(all.size(), near,
                   [&](size_t i) { return all[i].end_ns <= time; });
}

int64_t Cover::UpTo(int64_t time) const {
  const size_t i = FirstAfter(time);
  const auto all = set_.intervals();
  const int64_t inside =
      i < all.size() ? std::max<int64_t>(0, time - all[i].start_ns) : 0;
  return before_[i] + inside;
}

}  // namespace lamina::analysis::host
