// SPDX-License-Identifier: Apache-2.0
#include "trace/halves.h"

#include <algorithm>
#include <span>
#include <vector>

namespace lamina::trace {
namespace {

// Rows of halves: a half is too large to be moved around.
using Rows = std::span<uint32_t>;

// Sorts what stands at one instant of a track: ends of spans that are open,
// begins, the other ends.
class InstantSorter {
 public:
  explicit InstantSorter(std::span<const HalfSlice> halves) : halves_(halves) {}

  void Sort(Rows track) {
    open_ = 0;
    for (size_t begin = 0; begin < track.size();) {
      const int64_t time_ns = halves_[track[begin]].time_ns;
      size_t end = begin + 1;
      while (end < track.size() && halves_[track[end]].time_ns == time_ns)
        ++end;
      SortInstant(track.subspan(begin, end - begin));
      begin = end;
    }
  }

 private:
  void SortInstant(Rows instant) {
    rows_.assign(instant.begin(), instant.end());
    const auto ends = static_cast<size_t>(
        std::count_if(rows_.begin(), rows_.end(),
                      [&](uint32_t row) { return !halves_[row].begin; }));
    const size_t closing = std::min(open_, ends);
    const size_t begins = rows_.size() - ends;
    // Places of the next half of each group.
    size_t closed = 0;
    size_t begun = closing;
    size_t other = closing + begins;
    for (const uint32_t row : rows_) {
      size_t& at = halves_[row].begin ? begun
                   : closed < closing ? closed
                                      : other;
      instant[at++] = row;
    }
    open_ = open_ - closing + begins;
    open_ -= std::min(open_, ends - closing);
  }

  std::span<const HalfSlice> halves_;
  size_t open_ = 0;  // spans before the instant
  std::vector<uint32_t> rows_;
};

void AddSlice(const HalfSlice& begin, int64_t end_ns, Trace& trace) {
  if (end_ns - begin.time_ns > kMaxDurationNs) {
    trace.diagnostics.Add(Effect::kLost, "duration_out_of_range",
                          "The duration of an event is no number, or longer "
                          "than 7 days.",
                          begin.offset);
    return;
  }
  trace.slices.push_back({.start_ns = begin.time_ns,
                          .dur_ns = end_ns - begin.time_ns,
                          .name = begin.name,
                          .kind = begin.kind,
                          .category = begin.category,
                          .track = begin.track,
                          .uid = begin.uid,
                          .offset = begin.offset,
                          .detail = begin.detail});
}

void PairTrack(std::span<const HalfSlice> halves, Rows track, Trace& trace) {
  std::vector<uint32_t> open;
  for (const uint32_t row : track) {
    const HalfSlice& half = halves[row];
    if (half.begin) {
      open.push_back(row);
    } else if (open.empty()) {
      trace.diagnostics.Add(Effect::kLost, "end_without_begin",
                            "An end event (ph E) has no begin event.",
                            half.offset);
    } else {
      AddSlice(halves[open.back()], half.time_ns, trace);
      open.pop_back();
    }
  }
  for (const uint32_t row : open) {
    trace.diagnostics.Add(
        Effect::kRepaired, "begin_without_end",
        "A begin event (ph B) has no end event; it is taken to last to the "
        "last event of its track.",
        halves[row].offset);
    AddSlice(halves[row], halves[track.back()].time_ns, trace);
  }
}

// Room for a slice per begin.
void Reserve(const PodVector<HalfSlice>& halves, Slices& slices) {
  size_t count = slices.size();
  for (const HalfSlice& half : halves) count += half.begin;
  slices.reserve(count);
}

// Track by track, in the order of the input.
std::vector<uint32_t> ByTrack(std::span<const HalfSlice> halves,
                              size_t tracks) {
  std::vector<size_t> next(tracks + 1);  // place of a track's next one
  for (const HalfSlice& half : halves) ++next[half.track.value + 1];
  for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  std::vector<uint32_t> rows(halves.size());
  for (uint32_t i = 0; i < halves.size(); ++i)
    rows[next[halves[i].track.value]++] = i;
  return rows;
}

}  // namespace

void PairHalves(PodVector<HalfSlice> half_slices, Trace& trace) {
  Reserve(half_slices, trace.slices);
  const std::span<const HalfSlice> halves = half_slices.span();
  std::vector<uint32_t> rows = ByTrack(halves, trace.tracks.size());
  const auto earlier = [&](uint32_t a, uint32_t b) {
    return halves[a].time_ns < halves[b].time_ns;
  };
  InstantSorter instants(halves);
  for (auto begin = rows.begin(); begin != rows.end();) {
    const TrackId on = halves[*begin].track;
    const auto end = std::find_if(begin, rows.end(), [&](uint32_t row) {
      return halves[row].track != on;
    });
    const Rows track(begin, end);
    if (!std::is_sorted(begin, end, earlier)) {
      std::stable_sort(begin, end, earlier);
      instants.Sort(track);
    }
    PairTrack(halves, track, trace);
    begin = end;
  }
}

}  // namespace lamina::trace
