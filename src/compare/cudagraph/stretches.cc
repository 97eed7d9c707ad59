// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/stretches.h"

#include <algorithm>
#include <limits>

namespace lamina::cudagraph {
namespace {

constexpr uint64_t kMaxCells = uint64_t{100} << 20;

// Costs of reading on. A jump pays when it saves more odd elements than a few:
// a repeat is longer than that.
constexpr uint32_t kOther = 2;  // an element that is not the expected one
constexpr uint32_t kExtra = 2;  // one that the capture lacks
constexpr uint32_t kLeftOut = 1;
constexpr uint32_t kJump = 10;
// A launch may begin anywhere, but goes on where the last one ended when it
// can.
constexpr uint32_t kJumpAtBreak = 3;

// A stretch that follows nothing in particular proves nothing.
constexpr uint32_t kLeastMatched = 4;

enum Step : uint8_t { kOn, kStay, kSkip, kFresh };

}  // namespace

bool FitsStretches(size_t capture, size_t replay) {
  return uint64_t{capture} * replay <= kMaxCells;
}

std::vector<Stretch> FindStretches(std::span<const uint32_t> capture,
                                   std::span<const uint32_t> replay,
                                   std::span<const uint32_t> breaks) {
  const size_t m = capture.size();
  const size_t n = replay.size();
  if (m == 0 || n == 0 || !FitsStretches(m, n)) return {};
  // cost[i]: cheapest with capture[i] read last.
  std::vector<uint32_t> cost(m), next(m);
  std::vector<uint8_t> steps(n * m);
  std::vector<uint32_t> from(n, 0);  // where a jump to the element comes from
  for (size_t j = 0; j < n; ++j) {
    uint8_t* const row = steps.data() + j * m;
    uint32_t fresh = 0;
    if (j > 0) {
      const auto best = std::min_element(cost.begin(), cost.end());
      from[j] = static_cast<uint32_t>(best - cost.begin());
      fresh = *best + (std::binary_search(breaks.begin(), breaks.end(), j)
                           ? kJumpAtBreak
                           : kJump);
    }
    for (size_t i = 0; i < m; ++i) {
      const uint32_t odd = capture[i] == replay[j] ? 0 : kOther;
      uint32_t least = fresh + odd;
      Step step = kFresh;
      if (j > 0) {
        if (i > 0 && cost[i - 1] + odd <= least) {
          least = cost[i - 1] + odd;
          step = kOn;
        }
        if (cost[i] + kExtra < least) {
          least = cost[i] + kExtra;
          step = kStay;
        }
        if (i > 0 && next[i - 1] + kLeftOut < least) {
          least = next[i - 1] + kLeftOut;
          step = kSkip;
        }
      }
      next[i] = least;
      row[i] = step;
    }
    cost.swap(next);
  }
  std::vector<Stretch> found;
  auto i = static_cast<size_t>(std::min_element(cost.begin(), cost.end()) -
                               cost.begin());
  std::vector<Piece> pieces;  // of the open stretch, from its end
  bool open = false;          // the last piece may grow
  uint32_t matched = 0;
  const auto close = [&] {
    open = false;
    if (pieces.empty()) return;
    Stretch stretch;
    stretch.whole = {pieces.back().replay_begin, pieces.front().replay_end,
                     pieces.back().capture_begin, pieces.front().capture_end};
    const uint32_t length =
        stretch.whole.replay_end - stretch.whole.replay_begin;
    stretch.pieces.assign(pieces.rbegin(), pieces.rend());
    if (matched * 2 >= length && matched >= std::min<size_t>(kLeastMatched, n))
      found.push_back(std::move(stretch));
    pieces.clear();
    matched = 0;
  };
  size_t next_break = breaks.size();
  for (size_t j = n; j-- > 0;) {
    while (steps[j * m + i] == kSkip) --i;
    const auto step = static_cast<Step>(steps[j * m + i]);
    if (step != kStay && capture[i] == replay[j]) {
      ++matched;
      if (!open) {
        pieces.emplace_back();
        pieces.back().replay_end = static_cast<uint32_t>(j + 1);
        pieces.back().capture_end = static_cast<uint32_t>(i + 1);
        open = true;
      }
      pieces.back().replay_begin = static_cast<uint32_t>(j);
      pieces.back().capture_begin = static_cast<uint32_t>(i);
    }
    while (next_break > 0 && breaks[next_break - 1] >= j) {
      open = false;
      --next_break;
    }
    if (step == kFresh) {
      close();
      i = from[j];
    } else if (step == kOn) {
      --i;
    }
  }
  std::reverse(found.begin(), found.end());
  return found;
}

std::vector<uint32_t> Occurrences(std::span<const uint32_t> capture,
                                  uint32_t begin, uint32_t end) {
  std::vector<uint32_t> places;
  const auto text = capture.subspan(begin, end - begin);
  // Longest proper prefix that ends at each element (Knuth, Morris, Pratt).
  std::vector<uint32_t> back(text.size(), 0);
  for (uint32_t i = 1, k = 0; i < text.size(); ++i) {
    while (k > 0 && text[i] != text[k]) k = back[k - 1];
    if (text[i] == text[k]) ++k;
    back[i] = k;
  }
  uint32_t k = 0;
  for (uint32_t i = 0; i < capture.size(); ++i) {
    while (k > 0 && (k == text.size() || capture[i] != text[k]))
      k = back[k - 1];
    if (capture[i] == text[k]) ++k;
    if (k == text.size())
      places.push_back(i + 1 - static_cast<uint32_t>(text.size()));
  }
  return places;
}

}  // namespace lamina::cudagraph
