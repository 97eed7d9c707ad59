// SPDX-License-Identifier: Apache-2.0
#include "analysis/host/os_records.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "trace/os_records.h"

namespace lamina::analysis::host {
namespace {

constexpr int kNoCategory = -1;
constexpr uint32_t kNoTrack = 0xFFFFFFFF;

int CategoryId(const trace::Trace& trace, std::string_view text) {
  for (size_t i = 0; i < trace.categories.size(); ++i) {
    if (trace.Text(trace.categories[i]) == text) return static_cast<int>(i);
  }
  return kNoCategory;
}

// Nothing for names that are no states.
std::optional<ProcessorState> StateOf(std::string_view name) {
  if (name == trace::kStateRunning) return ProcessorState::kRunning;
  if (name == trace::kStatePreempted) return ProcessorState::kPreempted;
  if (name == trace::kStateOff) return ProcessorState::kOff;
  if (name.starts_with(trace::kStateBlocked)) return ProcessorState::kBlocked;
  return std::nullopt;
}

}  // namespace

OsCalls::OsCalls(const trace::Trace& trace)
    : category_(CategoryId(trace, trace::kOsCallCategory)) {}

std::vector<OsRecords> FindOsRecords(
    const trace::Trace& trace, uint32_t slices,
    const std::vector<trace::TrackId>& tracks) {
  std::vector<OsRecords> out(tracks.size());
  const int calls = CategoryId(trace, trace::kOsCallCategory);
  const int states = CategoryId(trace, trace::kThreadStateCategory);
  if (calls == kNoCategory && states == kNoCategory) return out;
  // What each track of the trace tells of.
  std::vector<uint32_t> owner(trace.tracks.size(), kNoTrack);
  absl::flat_hash_map<std::pair<uint32_t, std::string_view>, uint32_t> named;
  for (uint32_t i = 0; i < tracks.size(); ++i) {
    const trace::Track& track = trace.tracks[tracks[i].value];
    owner[tracks[i].value] = i;
    named.try_emplace({track.pid.value, trace.Text(track.tid)}, i);
  }
  std::vector<uint32_t> owner_of_states(trace.tracks.size(), kNoTrack);
  for (uint32_t t = 0; t < trace.tracks.size(); ++t) {
    const trace::Track& track = trace.tracks[t];
    const auto thread = trace::ThreadOfStateTrack(trace.Text(track.tid));
    if (!thread) continue;
    const auto it = named.find({track.pid.value, *thread});
    if (it != named.end()) owner_of_states[t] = it->second;
  }
  std::vector<std::vector<Interval>> active(tracks.size());
  for (uint32_t i = 0; i < slices; ++i) {
    if (trace.slices.kind[i] != trace::Kind::kOther) continue;
    const trace::SliceId s(i);
    const Interval interval{trace.Start(s), trace.End(s)};
    if (interval.length_ns() <= 0) continue;
    const uint32_t track = trace.slices.track[i].value;
    if (trace.slices.category[i] == calls && owner[track] != kNoTrack)
      active[owner[track]].push_back(interval);
    if (trace.slices.category[i] != states) continue;
    const uint32_t of = owner_of_states[track];
    const auto state = StateOf(trace.Name(s));
    if (of != kNoTrack && state)
      out[of].states.push_back({interval, *state, trace.slices.name[i]});
  }
  for (size_t i = 0; i < out.size(); ++i) {
    auto& own = out[i].states;
    const auto by_start = [](const ThreadState& a, const ThreadState& b) {
      return a.interval.start_ns < b.interval.start_ns;
    };
    std::stable_sort(own.begin(), own.end(), by_start);
    // A thread is in one state at a time: the later record is right.
    for (size_t k = 0; k + 1 < own.size(); ++k) {
      own[k].interval.end_ns =
          std::min(own[k].interval.end_ns, own[k + 1].interval.start_ns);
    }
    std::erase_if(own, [](const ThreadState& state) {
      return state.interval.length_ns() <= 0;
    });
    for (const ThreadState& state : own) {
      if (state.state == ProcessorState::kRunning ||
          state.state == ProcessorState::kPreempted)
        active[i].push_back(state.interval);
    }
    out[i].active = Cover(std::move(active[i]));
  }
  return out;
}

}  // namespace lamina::analysis::host
