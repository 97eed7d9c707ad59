// SPDX-License-Identifier: Apache-2.0
#include "base/sequence_match.h"

#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <limits>

#include "base/status.h"
#include "base/stop.h"

namespace lamina {
namespace {

// Positions count from the start of the reduced sequences.
struct Box {
  int64_t a_begin, a_end;
  int64_t b_begin, b_end;
};
struct Point {
  int64_t a, b;
};

// Divides boxes at a point that lies on a shortest edit path until one side of
// each is empty. A path is followed from both corners at once; `reach` holds,
// for each diagonal a - b, how far along it so many edits lead.
class Divider {
 public:
  Divider(std::span<const uint64_t> a, std::span<const uint64_t> b,
          int64_t max_edits)
      : a_(a),
        b_(b),
        max_edits_(max_edits),
        zero_(static_cast<int64_t>(b.size()) + 1),
        from_start_(a.size() + b.size() + 3),
        from_end_(a.size() + b.size() + 3) {}

  std::vector<SequencePair> Run() {
    std::vector<Box> boxes{{0, Size(a_), 0, Size(b_)}};
    while (!boxes.empty()) {
      LookForStop();
      Box box = boxes.back();
      boxes.pop_back();
      while (box.a_begin < box.a_end && box.b_begin < box.b_end &&
             Equal(box.a_begin, box.b_begin))
        Take(box.a_begin++, box.b_begin++);
      while (box.a_begin < box.a_end && box.b_begin < box.b_end &&
             Equal(box.a_end - 1, box.b_end - 1))
        Take(--box.a_end, --box.b_end);
      if (box.a_begin == box.a_end || box.b_begin == box.b_end) continue;
      const Point p = Split(box);
      boxes.push_back({box.a_begin, p.a, box.b_begin, p.b});
      boxes.push_back({p.a, box.a_end, p.b, box.b_end});
    }
    std::sort(
        pairs_.begin(), pairs_.end(),
        [](const SequencePair& x, const SequencePair& y) { return x.a < y.a; });
    return std::move(pairs_);
  }

 private:
  static int64_t Size(std::span<const uint64_t> s) {
    return static_cast<int64_t>(s.size());
  }
  bool Equal(int64_t i, int64_t j) const {
    return a_[static_cast<size_t>(i)] == b_[static_cast<size_t>(j)];
  }
  void Take(int64_t i, int64_t j) {
    pairs_.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(j)});
  }
  int64_t& Forward(int64_t diagonal) {
    return from_start_[static_cast<size_t>(diagonal + zero_)];
  }
  int64_t& Backward(int64_t diagonal) {
    return from_end_[static_cast<size_t>(diagonal + zero_)];
  }

  // Both ends of the box differ, so at least two edits are needed and the
  // point is no corner.
  Point Split(const Box& box) {
    constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 2;
    const int64_t lowest = box.a_begin - box.b_end;
    const int64_t highest = box.a_end - box.b_begin;
    const int64_t start = box.a_begin - box.b_begin;
    const int64_t end = box.a_end - box.b_end;
    const bool odd = ((start - end) & 1) != 0;
    // Diagonals in use; one beyond each end is a wall unless it is outside.
    int64_t forward_low = start, forward_high = start;
    int64_t backward_low = end, backward_high = end;
    Forward(start) = box.a_begin;
    Backward(end) = box.a_end;
    for (int64_t edits = 1;; ++edits) {
      LookForStop();
      if (forward_low > lowest) {
        Forward(--forward_low - 1) = -1;
      } else {
        ++forward_low;
      }
      if (forward_high < highest) {
        Forward(++forward_high + 1) = -1;
      } else {
        --forward_high;
      }
      for (int64_t d = forward_high; d >= forward_low; d -= 2) {
        int64_t i = std::max(Forward(d - 1) + 1, Forward(d + 1));
        while (i < box.a_end && i - d < box.b_end && Equal(i, i - d)) ++i;
        Forward(d) = i;
        if (odd && d >= backward_low && d <= backward_high && Backward(d) <= i)
          return {i, i - d};
      }
      if (backward_low > lowest) {
        Backward(--backward_low - 1) = kFar;
      } else {
        ++backward_low;
      }
      if (backward_high < highest) {
        Backward(++backward_high + 1) = kFar;
      } else {
        --backward_high;
      }
      for (int64_t d = backward_high; d >= backward_low; d -= 2) {
        int64_t i = std::min(Backward(d - 1), Backward(d + 1) - 1);
        while (i > box.a_begin && i - d > box.b_begin &&
               Equal(i - 1, i - d - 1))
          --i;
        Backward(d) = i;
        if (!odd && d >= forward_low && d <= forward_high && i <= Forward(d))
          return {i, i - d};
      }
      if (edits >= max_edits_) return Farthest(box, forward_low, forward_high);
    }
  }

  // The point that the search from the start has come to.
  Point Farthest(const Box& box, int64_t low, int64_t high) {
    Point best{box.a_begin, box.b_begin};
    for (int64_t d = high; d >= low; d -= 2) {
      const int64_t i = std::min(Forward(d), box.a_end);
      const int64_t j = i - d;
      if (j < box.b_begin || j > box.b_end) continue;
      if (i + j > best.a + best.b) best = {i, j};
    }
    LAMINA_CHECK(best.a > box.a_begin || best.b > box.b_begin);
    return best;
  }

  std::span<const uint64_t> a_;
  std::span<const uint64_t> b_;
  int64_t max_edits_;
  int64_t zero_;
  std::vector<int64_t> from_start_;
  std::vector<int64_t> from_end_;
  std::vector<SequencePair> pairs_;
};

// Elements that the other sequence has too, with their positions.
struct Shared {
  std::vector<uint64_t> values;
  std::vector<uint32_t> positions;
};
Shared KeepShared(std::span<const uint64_t> own,
                  std::span<const uint64_t> other) {
  const absl::flat_hash_set<uint64_t> known(other.begin(), other.end());
  Shared shared;
  for (uint32_t i = 0; i < own.size(); ++i) {
    if (!known.contains(own[i])) continue;
    shared.values.push_back(own[i]);
    shared.positions.push_back(i);
  }
  return shared;
}

}  // namespace

std::vector<SequencePair> MatchSequences(std::span<const uint64_t> a,
                                         std::span<const uint64_t> b,
                                         uint32_t max_edits) {
  std::vector<SequencePair> pairs;
  // Equal ends, the usual case, need no tables.
  size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) {
    pairs.push_back({static_cast<uint32_t>(head), static_cast<uint32_t>(head)});
    ++head;
  }
  size_t tail = 0;
  while (tail < a.size() - head && tail < b.size() - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  const auto middle_a = a.subspan(head, a.size() - head - tail);
  const auto middle_b = b.subspan(head, b.size() - head - tail);
  if (!middle_a.empty() && !middle_b.empty()) {
    // What has no partner only lengthens the search.
    const Shared left = KeepShared(middle_a, middle_b);
    const Shared right = KeepShared(middle_b, middle_a);
    for (const SequencePair& pair :
         Divider(left.values, right.values, std::max<uint32_t>(max_edits, 1))
             .Run()) {
      pairs.push_back({static_cast<uint32_t>(head + left.positions[pair.a]),
                       static_cast<uint32_t>(head + right.positions[pair.b])});
    }
  }
  for (size_t i = tail; i > 0; --i) {
    pairs.push_back({static_cast<uint32_t>(a.size() - i),
                     static_cast<uint32_t>(b.size() - i)});
  }
  return pairs;
}

}  // namespace lamina
