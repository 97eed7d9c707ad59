// SPDX-License-Identifier: Apache-2.0
//
// Calls may stand on other lines than the ranges of the same thread: a line of
// calls belongs to the line whose executions hold most of them, to itself
// before others.
#include "ingest/xplane/executions.h"

#include <algorithm>
#include <tuple>

namespace lamina::ingest::xplane {

using trace::kNoRow;
using trace::TrackId;

Executions::Executions(Pending& pending)
    : rows_(std::move(pending.thunks.empty() ? pending.modules
                                             : pending.thunks)) {
  pending.thunks.Reset();
  pending.modules.Reset();
  std::sort(rows_.begin(), rows_.end(),
            [](const Execution& a, const Execution& b) {
              return std::tuple(a.track, a.start_ns, a.end_ns) <
                     std::tuple(b.track, b.start_ns, b.end_ns);
            });
  for (const Execution& execution : rows_) {
    if (tracks_.empty() || tracks_.back() != execution.track)
      tracks_.push_back(execution.track);
  }
  PairLines(pending.calls);
}

uint32_t Executions::Of(const Call& call) const {
  const auto it = line_of_.find(call.track);
  return it == line_of_.end() ? kNoRow : At(it->second, call.start_ns);
}

void Executions::PairLines(const Waiting<Call>& calls) {
  size_t lines = calls.empty() ? 0 : 1;
  for (size_t i = 1; i < calls.size(); ++i)
    lines += calls[i].track != calls[i - 1].track;
  if (tracks_.empty() || lines == 0) return;
  // Calls per line that are asked. A host has some hundred threads; lines
  // without number are no recording.
  constexpr size_t kMostAsked = size_t{1} << 24;
  const size_t sample =
      std::min<size_t>(256, kMostAsked / tracks_.size() / lines);
  if (sample == 0) return;
  for (size_t begin = 0; begin < calls.size();) {
    size_t end = begin;
    while (end < calls.size() && calls[end].track == calls[begin].track) ++end;
    const TrackId owner =
        OwnerOf(calls.span().subspan(begin, end - begin), sample);
    if (owner.valid()) line_of_[calls[begin].track] = owner;
    begin = end;
  }
}

// The line whose executions hold most of the calls; invalid where two hold as
// many.
TrackId Executions::OwnerOf(std::span<const Call> line, size_t sample) const {
  const size_t stride = std::max<size_t>(1, line.size() / sample);
  size_t best = 0;
  size_t second = 0;
  TrackId owner;
  for (const TrackId track : tracks_) {
    size_t held = 0;
    for (size_t i = 0; i < line.size(); i += stride)
      held += At(track, line[i].start_ns) != kNoRow;
    const bool itself = track == line.front().track;
    if (held > best || (held == best && held > 0 && itself)) {
      // The line itself wins a tie.
      if (itself) ++held;
      second = best;
      best = held;
      owner = track;
    } else {
      second = std::max(second, held);
    }
  }
  return best > second ? owner : TrackId();
}

uint32_t Executions::At(TrackId track, int64_t time_ns) const {
  auto after =
      std::upper_bound(rows_.begin(), rows_.end(), std::pair(track, time_ns),
                       [](const auto& key, const Execution& e) {
                         return key < std::pair(e.track, e.start_ns);
                       });
  if (after == rows_.begin()) return kNoRow;
  --after;
  if (after->track != track || time_ns >= after->end_ns) return kNoRow;
  return static_cast<uint32_t>(after - rows_.begin());
}

}  // namespace lamina::ingest::xplane
