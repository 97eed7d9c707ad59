// SPDX-License-Identifier: Apache-2.0
#include "emit/perfetto/arrows.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "trace/module_frames.h"

namespace lamina::emit::perfetto {
namespace {

using trace::FlowKind;
using trace::FlowPhase;
using trace::kNoInt;
using trace::SliceId;

// Numbers of launches are those of slices; the others' are above, those of each
// kind in a range of their own.
constexpr uint64_t kOther = uint64_t{1} << 62;
constexpr int kKindShift = 60;
// Below those of all kinds and above those of launches.
constexpr uint64_t kAdded = uint64_t{1} << 40;
constexpr uint64_t kIds = (uint64_t{1} << kKindShift) - 1;

// Slices by track, then start, then longest first.
std::vector<SliceId> ByTrack(const trace::Trace& trace) {
  std::vector<SliceId> order;
  const uint32_t recorded = trace::RecordedSlices(trace);
  for (uint32_t i = 0; i < recorded; ++i) order.push_back(SliceId(i));
  const auto key = [&](SliceId s) {
    return std::tuple(trace.slices.track[s.value].value, trace.Start(s),
                      -trace.Duration(s));
  };
  std::sort(order.begin(), order.end(),
            [&](SliceId a, SliceId b) { return key(a) < key(b); });
  return order;
}

}  // namespace

Arrows::Arrows(const trace::Trace& trace) : trace_(trace) {
  is_launched_.resize(trace.slices.size());
  AddLaunches();
  AddOthers();
}

// The call of a correlation: the first, unless a flow begins at another.
void Arrows::AddLaunches() {
  const uint32_t recorded = trace::RecordedSlices(trace_);
  absl::flat_hash_map<int64_t, SliceId> calls;
  absl::flat_hash_map<int64_t, std::vector<SliceId>> shared;
  for (uint32_t i = 0; i < recorded; ++i) {
    const SliceId s(i);
    const trace::ApiArgs* api = trace_.Api(s);
    if (api == nullptr || api->correlation <= 0) continue;
    const auto [it, is_new] = calls.try_emplace(api->correlation, s);
    if (is_new) continue;
    std::vector<SliceId>& all = shared[api->correlation];
    if (all.empty()) all.push_back(it->second);
    all.push_back(s);
    if (trace_.Start(s) < trace_.Start(it->second)) it->second = s;
  }
  const trace::Flows& flows = trace_.flows;
  for (size_t f = 0; f < flows.size() && !shared.empty(); ++f) {
    if (flows.kind[f] != FlowKind::kLaunch ||
        flows.phase[f] != FlowPhase::kStart)
      continue;
    const auto it = shared.find(flows.id[f]);
    if (it == shared.end()) continue;
    for (const SliceId s : it->second) {
      if (trace_.slices.track[s.value] == flows.track[f] &&
          trace_.Start(s) <= flows.time_ns[f] &&
          trace_.End(s) >= flows.time_ns[f])
        calls[it->first] = s;
    }
  }
  for (uint32_t i = 0; i < recorded; ++i) {
    const trace::DeviceArgs* device = trace_.Device(SliceId(i));
    if (device == nullptr || device->correlation <= 0) continue;
    const auto call = calls.find(device->correlation);
    if (call == calls.end()) continue;
    launched_[call->second.value].push_back(i);
    is_launched_[i] = true;
  }
}

// An arrow stands at the innermost slice around its time on its track; where
// that leaves an arrow without an end, it is left out. Arrows of launches that
// end at joined work are there already.
void Arrows::AddOthers() {
  const trace::Flows& flows = trace_.flows;
  if (flows.size() == 0) return;
  const std::vector<SliceId> order = ByTrack(trace_);
  const auto slice_at = [&](size_t f) -> SliceId {
    const std::pair at(flows.track[f].value, flows.time_ns[f]);
    auto after = std::upper_bound(
        order.begin(), order.end(), at, [&](const auto& place, SliceId s) {
          return place <
                 std::pair(trace_.slices.track[s.value].value, trace_.Start(s));
        });
    // The last that has begun and not ended; what encloses it began earlier.
    for (int tries = 0; tries < 64 && after != order.begin(); ++tries) {
      const SliceId s = *--after;
      if (trace_.slices.track[s.value] != flows.track[f]) break;
      if (trace_.End(s) >= flows.time_ns[f]) return s;
    }
    return {};
  };
  struct Ends {
    std::vector<SliceId> slices;
    bool of_joined_work = false;
    bool of_host = false;
  };
  absl::flat_hash_map<std::pair<int, int64_t>, Ends> arrows;
  std::vector<std::pair<int, int64_t>> keys;  // in the order of the recording
  for (size_t f = 0; f < flows.size(); ++f) {
    if (flows.id[f] == kNoInt) continue;
    const std::pair key(static_cast<int>(flows.kind[f]), flows.id[f]);
    const auto [it, is_new] = arrows.try_emplace(key);
    if (is_new) keys.push_back(key);
    const SliceId s = slice_at(f);
    if (!s.valid()) continue;
    Ends& ends = it->second;
    ends.of_joined_work = ends.of_joined_work || is_launched_[s.value];
    ends.of_host =
        ends.of_host || !trace::IsDevice(trace_.slices.kind[s.value]);
    ends.slices.push_back(s);
  }
  for (const auto& key : keys) {
    Ends& ends = arrows[key];
    std::sort(ends.slices.begin(), ends.slices.end());
    ends.slices.erase(std::unique(ends.slices.begin(), ends.slices.end()),
                      ends.slices.end());
    const bool launch = key.first == static_cast<int>(FlowKind::kLaunch);
    if (ends.slices.size() < 2) continue;
    // Work whose call the recording lacks is not launched by other work.
    if (launch && (ends.of_joined_work || !ends.of_host)) continue;
    const uint64_t id = kOther |
                        static_cast<uint64_t>(key.first) << kKindShift |
                        (static_cast<uint64_t>(key.second) & kIds);
    for (const SliceId s : ends.slices) others_[s.value].push_back(id);
  }
}

uint64_t Arrows::Add(SliceId from) {
  const uint64_t id = kAdded | ++added_;
  others_[from.value].push_back(id);
  return id;
}

void Arrows::Add(SliceId to, uint64_t id) { others_[to.value].push_back(id); }

const std::vector<uint64_t>& Arrows::Of(SliceId slice) {
  found_.clear();
  const auto call = launched_.find(slice.value);
  if (call != launched_.end()) {
    for (const uint32_t s : call->second) found_.push_back(uint64_t{s} + 1);
  }
  if (is_launched_[slice.value]) found_.push_back(uint64_t{slice.value} + 1);
  const auto it = others_.find(slice.value);
  if (it != others_.end())
    found_.insert(found_.end(), it->second.begin(), it->second.end());
  return found_;
}

}  // namespace lamina::emit::perfetto
