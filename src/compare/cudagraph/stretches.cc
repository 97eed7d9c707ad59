// SPDX-License-Identifier: Apache-2.0

#include "compare/cudagraph/stretches.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "analysis/common/replayed.h"
#include "compare/cudagraph/names.h"
#include "trace/categories.h"

namespace lamina::cudagraph {

namespace {

using trace::SliceId;

// Nodes are numbered in the order of capture, which parallel branches do not
// keep when they run. False where the work has no such order.
bool SortByNode(const trace::Trace& trace, std::vector<SliceId>& work) {
  std::vector<std::pair<int64_t, SliceId>> nodes;
  for (const SliceId s : work) {
    const trace::DeviceArgs* args = trace.Device(s);
    if (args == nullptr || args->graph_node_id == trace::kNoInt) return false;
    nodes.emplace_back(args->graph_node_id, s);
  }
  std::stable_sort(
      nodes.begin(), nodes.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i].first == nodes[i - 1].first) return false;
  }
  for (size_t i = 0; i < nodes.size(); ++i) work[i] = nodes[i].second;
  return true;
}

}  // namespace

std::vector<Replay> FindReplays(const analysis::Context& context,
                                std::optional<int64_t> batch) {
  const trace::Trace& trace = context.trace;
  std::vector<Replay> replays;
  std::map<uint32_t, uint32_t> by_launch;  // node -> replay
  for (const SliceId s : trace.device_slices()) {
    const tree::NodeId launch = context.tree.launch(s);
    if (!launch.valid() || !trace::IsGraphLaunch(context.tree.name(launch)))
      continue;
    const auto [it, is_new] = by_launch.try_emplace(
        launch.value, static_cast<uint32_t>(replays.size()));
    if (is_new) {
      Replay replay;
      replay.launch = context.tree.slice(launch);
      replay.batch = batch.value_or(
          BatchOf(trace.strings[context.steps.RequestsAt(launch)]));
      replays.push_back(std::move(replay));
    }
    replays[it->second].work.push_back(s);
  }
  for (Replay& replay : replays) {
    std::stable_sort(replay.work.begin(), replay.work.end(),
                     [&](SliceId a, SliceId b) {
                       return trace.Start(a) != trace.Start(b)
                                  ? trace.Start(a) < trace.Start(b)
                                  : a < b;
                     });
    replay.by_node = SortByNode(trace, replay.work);
    const trace::DeviceArgs* const args = trace.Device(replay.work[0]);
    if (args != nullptr) replay.graph_id = args->graph_id;
  }
  std::stable_sort(replays.begin(), replays.end(),
                   [&](const Replay& a, const Replay& b) {
                     return trace.Start(a.launch) < trace.Start(b.launch);
                   });
  for (uint32_t i = 0; i < replays.size(); ++i) {
    replays[i].number = i;
    replays[i].step = context.steps.StepAt(trace.Start(replays[i].launch));
  }
  return replays;
}

using trace::Kind;
using trace::kNoRow;
using trace::SliceId;

Ranges::Ranges(const trace::Trace& trace, const RE2& tags)
    : trace_(trace),
      is_tag_(trace.strings.size(), 2),
      tracks_(trace.tracks.size()) {
  const trace::Slices& slices = trace.slices;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (slices.kind[i] != Kind::kAnnotation && slices.kind[i] != Kind::kOp)
      continue;
    uint8_t& tag = is_tag_[slices.name[i].value];
    if (tag == 2) {
      const std::string_view name = trace.strings[slices.name[i]];
      tag = RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), tags);
    }
    if (slices.kind[i] == Kind::kOp && tag == 0) continue;
    const int64_t start = slices.start_ns[i];
    tracks_[slices.track[i].value].push_back(
        {start, start + slices.dur_ns[i], SliceId(i), kNoRow});
  }
  for (std::vector<Range>& ranges : tracks_) {
    std::stable_sort(ranges.begin(), ranges.end(),
                     [](const Range& a, const Range& b) {
                       return a.start_ns != b.start_ns ? a.start_ns < b.start_ns
                                                       : a.end_ns > b.end_ns;
                     });
    std::vector<uint32_t> stack;
    for (uint32_t i = 0; i < ranges.size(); ++i) {
      while (!stack.empty() &&
             ranges[stack.back()].end_ns <= ranges[i].start_ns)
        stack.pop_back();
      if (!stack.empty()) ranges[i].below = stack.back();
      stack.push_back(i);
    }
  }
}

std::vector<SliceId> Ranges::At(trace::TrackId track, int64_t at) const {
  const std::vector<Range>& ranges = tracks_[track.value];
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), at,
      [](int64_t time, const Range& r) { return time < r.start_ns; });
  std::vector<SliceId> found;
  if (after == ranges.begin()) return found;
  // Whatever has not ended lies on the stack below the last to begin.
  for (auto i = static_cast<uint32_t>(after - ranges.begin() - 1); i != kNoRow;
       i = ranges[i].below) {
    if (at < ranges[i].end_ns) found.push_back(ranges[i].slice);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

bool Ranges::IsTag(SliceId range) const {
  return is_tag_[trace_.slices.name[range.value].value] == 1;
}

namespace {

constexpr uint64_t kMaxStretchCells = uint64_t{100} << 20;

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
  return uint64_t{capture} * replay <= kMaxStretchCells;
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
