// SPDX-License-Identifier: Apache-2.0
//
// Spans as begins and ends that pair like brackets.
//
// Spans are placed on a stack of open ones while they nest; one that overlaps
// what is open goes to the next stack on which it nests, a lane of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lamina::emit {

struct Span {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint32_t index = 0;  // the caller's
};

// Lanes beyond these are made without a search, so that spans that all overlap
// cost no more than their number.
inline constexpr size_t kMaxSearched = 64;

// For the spans of one track by start, then longest first: calls
// begin(index, lane, start_ns) and end(index, lane, end_ns) such that those of
// a lane pair like brackets in the order of the calls. The first lane is
// `lane`; further ones come from new_lane(number), counted from 1. Returns the
// number of spans on further lanes.
template <class NewLane, class Begin, class End>
uint64_t PairBrackets(std::span<const Span> spans, uint32_t lane,
                      NewLane&& new_lane, Begin&& begin, End&& end) {
  struct Stack {
    uint32_t lane = 0;
    std::vector<std::pair<int64_t, uint32_t>> open;  // end, index
  };
  std::vector<Stack> stacks(1);
  stacks[0].lane = lane;
  const auto close_until = [&](Stack& stack, int64_t time_ns) {
    while (!stack.open.empty() && stack.open.back().first <= time_ns) {
      const auto [end_ns, index] = stack.open.back();
      end(index, stack.lane, end_ns);
      stack.open.pop_back();
    }
  };
  uint64_t overlaps = 0;
  for (const Span& span : spans) {
    Stack* found = nullptr;
    for (size_t s = 0; s < stacks.size() && s < kMaxSearched; ++s) {
      close_until(stacks[s], span.start_ns);
      if (stacks[s].open.empty() ||
          stacks[s].open.back().first >= span.end_ns) {
        found = &stacks[s];
        break;
      }
    }
    if (found == nullptr) {
      const uint32_t further = new_lane(stacks.size());
      found = &stacks.emplace_back(Stack{further, {}});
    }
    overlaps += found != &stacks[0];
    begin(span.index, found->lane, span.start_ns);
    found->open.emplace_back(span.end_ns, span.index);
  }
  for (Stack& stack : stacks) close_until(stack, INT64_MAX);
  return overlaps;
}

}  // namespace lamina::emit
