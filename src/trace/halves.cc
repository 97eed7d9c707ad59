// SPDX-License-Identifier: Apache-2.0
#include "trace/halves.h"

#include <algorithm>
#include <array>
#include <span>

namespace lamina::trace {
namespace {

// Sorts what stands at one instant of a track: ends of spans that are open,
// begins, the other ends.
void OrderInstants(std::span<HalfSlice> track) {
  size_t open = 0;
  for (size_t begin = 0; begin < track.size();) {
    size_t end = begin;
    while (end < track.size() && track[end].time_ns == track[begin].time_ns)
      ++end;
    size_t closing = 0;
    for (size_t i = begin; i < end; ++i)
      closing += !track[i].begin && closing < open;
    size_t closed = 0;
    const auto rank = [&](const HalfSlice& half) {
      if (half.begin) return 1;
      return closed++ < closing ? 0 : 2;
    };
    std::array<std::vector<HalfSlice>, 3> parts;
    for (size_t i = begin; i < end; ++i)
      parts[static_cast<size_t>(rank(track[i]))].push_back(track[i]);
    size_t at = begin;
    for (const auto& part : parts) {
      for (const HalfSlice& half : part) track[at++] = half;
    }
    const size_t begins = parts[1].size();
    open = open - closing + begins;
    open -= std::min(open, parts[2].size());
    begin = end;
  }
}

void AddSlice(const HalfSlice& begin, int64_t end_ns, Trace& trace) {
  if (end_ns - begin.time_ns > kMaxDurationNs) {
    trace.diagnostics.Add(Effect::kLost, "duration_out_of_range",
                          "The duration of an event is no number, or longer "
                          "than 13 days.",
                          begin.offset);
    return;
  }
  Slices& to = trace.slices;
  to.start_ns.push_back(begin.time_ns);
  to.dur_ns.push_back(end_ns - begin.time_ns);
  to.name.push_back(begin.name);
  to.kind.push_back(begin.kind);
  to.category.push_back(begin.category);
  to.track.push_back(begin.track);
  to.uid.push_back(begin.uid);
  to.offset.push_back(begin.offset);
  to.detail.push_back(begin.detail);
}

void PairTrack(std::span<const HalfSlice> track, Trace& trace) {
  std::vector<const HalfSlice*> open;
  for (const HalfSlice& half : track) {
    if (half.begin) {
      open.push_back(&half);
    } else if (open.empty()) {
      trace.diagnostics.Add(Effect::kLost, "end_without_begin",
                            "An end event (ph E) has no begin event.",
                            half.offset);
    } else {
      AddSlice(*open.back(), half.time_ns, trace);
      open.pop_back();
    }
  }
  for (const HalfSlice* begin : open) {
    trace.diagnostics.Add(
        Effect::kRepaired, "begin_without_end",
        "A begin event (ph B) has no end event; it is taken to last to the "
        "last event of its track.",
        begin->offset);
    AddSlice(*begin, track.back().time_ns, trace);
  }
}

// Room for a slice per begin.
void Reserve(const PodVector<HalfSlice>& halves, Slices& slices) {
  size_t count = slices.size();
  for (const HalfSlice& half : halves) count += half.begin;
  slices.start_ns.reserve(count);
  slices.dur_ns.reserve(count);
  slices.name.reserve(count);
  slices.kind.reserve(count);
  slices.category.reserve(count);
  slices.track.reserve(count);
  slices.uid.reserve(count);
  slices.offset.reserve(count);
  slices.detail.reserve(count);
}

// Track by track, in the order of the input.
PodVector<HalfSlice> ByTrack(PodVector<HalfSlice> halves, size_t tracks) {
  const bool sorted = std::is_sorted(
      halves.begin(), halves.end(),
      [](const HalfSlice& a, const HalfSlice& b) { return a.track < b.track; });
  if (sorted) return halves;
  std::vector<size_t> next(tracks + 1);  // place of a track's next one
  for (const HalfSlice& half : halves) ++next[half.track.value + 1];
  for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  PodVector<HalfSlice> out;
  out.AppendUninitialized(halves.size());
  for (const HalfSlice& half : halves) out[next[half.track.value]++] = half;
  return out;
}

}  // namespace

void PairHalves(PodVector<HalfSlice> halves, Trace& trace) {
  halves = ByTrack(std::move(halves), trace.tracks.size());
  Reserve(halves, trace.slices);
  const auto earlier = [](const HalfSlice& a, const HalfSlice& b) {
    return a.time_ns < b.time_ns;
  };
  for (HalfSlice* begin = halves.begin(); begin != halves.end();) {
    HalfSlice* end = begin;
    while (end != halves.end() && end->track == begin->track) ++end;
    const std::span<HalfSlice> track(begin, end);
    if (!std::is_sorted(begin, end, earlier)) {
      std::stable_sort(begin, end, earlier);
      OrderInstants(track);
    }
    PairTrack(track, trace);
    begin = end;
  }
}

}  // namespace lamina::trace
