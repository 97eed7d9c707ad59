// SPDX-License-Identifier: Apache-2.0
//
// Sorting of data that is a few sorted runs one after the other, which is how
// profilers write events: all ops of a thread by time, then all its API calls
// by time. Runs are found and merged pair by pair; a pair already in order
// costs one comparison. n log(runs) instead of n log(n).
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/parallel.h"

namespace lamina {

// Stable. `less` must be a strict weak order.
template <class T, class Less>
void RunSort(std::vector<T>& values, int threads, Less less) {
  std::vector<size_t> starts = {0};
  for (size_t i = 1; i < values.size(); ++i) {
    if (less(values[i], values[i - 1])) starts.push_back(i);
  }
  if (starts.size() == 1) return;
  // Nearly random input: many tiny runs would be merged level by level;
  // std::stable_sort does the lower levels better.
  constexpr size_t kBlock = 4096;
  if (values.size() / starts.size() < 16) {
    const size_t blocks = (values.size() + kBlock - 1) / kBlock;
    starts.clear();
    for (size_t b = 0; b < blocks; ++b) starts.push_back(b * kBlock);
    ParallelFor(threads, blocks, [&](size_t b) {
      const auto begin = values.begin() + static_cast<ptrdiff_t>(b * kBlock);
      const auto end = values.begin() + static_cast<ptrdiff_t>(std::min(
                                            values.size(), (b + 1) * kBlock));
      std::stable_sort(begin, end, less);
    });
  }
  starts.push_back(values.size());
  std::vector<T> other;
  while (starts.size() > 2) {
    if (other.size() != values.size()) other.resize(values.size());
    const size_t pairs = starts.size() / 2;
    ParallelFor(threads, pairs, [&](size_t p) {
      const size_t begin = starts[2 * p];
      const size_t middle = starts[2 * p + 1];
      const size_t end =
          2 * p + 2 < starts.size() ? starts[2 * p + 2] : values.size();
      const auto at = [&](size_t i) {
        return values.begin() + static_cast<ptrdiff_t>(i);
      };
      const auto to = other.begin() + static_cast<ptrdiff_t>(begin);
      if (middle == end || begin == middle ||
          !less(values[middle], values[middle - 1])) {
        std::move(at(begin), at(end), to);
      } else {
        std::merge(std::make_move_iterator(at(begin)),
                   std::make_move_iterator(at(middle)),
                   std::make_move_iterator(at(middle)),
                   std::make_move_iterator(at(end)), to, less);
      }
    });
    std::vector<size_t> next;
    for (size_t i = 0; i + 1 < starts.size(); i += 2) next.push_back(starts[i]);
    next.push_back(values.size());
    starts = std::move(next);
    values.swap(other);
  }
}

}  // namespace lamina
