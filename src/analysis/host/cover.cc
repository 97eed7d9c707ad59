// SPDX-License-Identifier: Apache-2.0
#include "analysis/host/cover.h"

#include <algorithm>

namespace lamina::analysis::host {

Cover::Cover(std::vector<Interval> intervals)
    : set_(IntervalSet::Of(std::move(intervals))) {
  before_.reserve(set_.intervals().size() + 1);
  before_.push_back(0);
  for (const Interval& i : set_.intervals())
    before_.push_back(before_.back() + i.length_ns());
}

Cover Cover::Minus(const Cover& other) const {
  const auto left = set_.Minus(other.set_);
  return Cover({left.intervals().begin(), left.intervals().end()});
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
  const auto ended = [&](size_t i) { return all[i].end_ns <= time; };
  // Steps of doubling length until the answer lies in [low, high].
  size_t low = std::min(near, all.size()), high = low, step = 1;
  while (low > 0 && !ended(low - 1)) {
    high = low - 1;
    low -= std::min(low, step);
    step *= 2;
  }
  step = 1;
  while (high < all.size() && ended(high)) {
    low = high + 1;
    high += std::min(all.size() - high, step);
    step *= 2;
  }
  const auto first = all.begin();
  return static_cast<size_t>(
      std::partition_point(
          first + static_cast<ptrdiff_t>(low),
          first + static_cast<ptrdiff_t>(high),
          [&](const Interval& i) { return i.end_ns <= time; }) -
      first);
}

int64_t Cover::UpTo(int64_t time) const {
  const size_t i = FirstAfter(time);
  const auto all = set_.intervals();
  const int64_t inside =
      i < all.size() ? std::max<int64_t>(0, time - all[i].start_ns) : 0;
  return before_[i] + inside;
}

}  // namespace lamina::analysis::host
